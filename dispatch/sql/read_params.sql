-- Params that inputs refer to, bounded like the outputs.
SELECT found.id, CASE WHEN found.fits THEN found.params END, found.fits
FROM (
    SELECT run.id, run.params,
           wanted.place <= %(must)s OR sum(octet_length(run.params)) OVER (ORDER BY wanted.place) <= %(most)s AS fits
    FROM unnest(%(run_ids)s::uuid[]) WITH ORDINALITY AS wanted(run_id, place)
    JOIN workflows_run AS run ON run.id = wanted.run_id
) AS found
