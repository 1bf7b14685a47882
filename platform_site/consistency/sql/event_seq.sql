-- I4: events of a run are numbered from 1 without a gap, and the run knows the last number.
SELECT run.id, 'run', format('last number %%s, %%s events from %%s to %%s', run.event_seq, events.count, events.first, events.last)
FROM workflows_run AS run
CROSS JOIN LATERAL (
    SELECT count(*) AS count, min(seq) AS first, max(seq) AS last FROM workflows_stateevent WHERE run_id = run.id
) AS events
WHERE run.id = ANY(%(run_ids)s::uuid[])
  AND (events.count, events.first, events.last) IS DISTINCT FROM (run.event_seq, 1::bigint, run.event_seq)
