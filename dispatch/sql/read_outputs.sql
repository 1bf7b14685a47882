-- Outputs that inputs refer to, in the order given and as far as they weigh no more than ``most`` bytes together; the
-- first ``must`` of them whatever they weigh. What does not fit is named without its text, which is not even read.
SELECT found.run_id, found.key, CASE WHEN found.fits THEN found.output END, found.fits
FROM (
    SELECT task.run_id, task.key, task.output,
           wanted.place <= %(must)s
           OR sum(coalesce(octet_length(task.output), 0)) OVER (ORDER BY wanted.place) <= %(most)s AS fits
    FROM unnest(%(run_ids)s::uuid[], %(keys)s::text[]) WITH ORDINALITY AS wanted(run_id, key, place)
    JOIN workflows_task AS task ON task.run_id = wanted.run_id AND task.key = wanted.key
    WHERE task.state = 'succeeded'
) AS found
