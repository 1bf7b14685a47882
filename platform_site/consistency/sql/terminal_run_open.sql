-- Nothing of a finished run is open: no dispatch, no attempt.
SELECT run.id, 'run', format('is %%s with %%s open dispatches and %%s running attempts', run.state, open.dispatches, open.attempts)
FROM workflows_run AS run
CROSS JOIN LATERAL (
    SELECT (SELECT count(*) FROM dispatch_dispatch
            WHERE run_id = run.id AND state IN ('pending', 'leased')) AS dispatches,
           (SELECT count(*) FROM workflows_attempt WHERE run_id = run.id AND state = 'running') AS attempts
) AS open
WHERE run.id = ANY(%(run_ids)s::uuid[]) AND run.state IN ('succeeded', 'failed', 'canceled')
  AND open.dispatches + open.attempts > 0
