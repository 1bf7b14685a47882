-- A queued task has a pending dispatch, a running one a leased dispatch, any other none that is open.
SELECT task.run_id, task.key, format('is %%s with %%s pending and %%s leased dispatches', task.state, rows.pending, rows.leased)
FROM workflows_task AS task
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE state = 'pending') AS pending, count(*) FILTER (WHERE state = 'leased') AS leased
    FROM dispatch_dispatch
    WHERE run_id = task.run_id AND task_id = task.id AND state IN ('pending', 'leased')
) AS rows
WHERE task.run_id = ANY(%(run_ids)s::uuid[])
  AND (rows.pending > 0, rows.leased > 0) <> (task.state = 'queued', task.state = 'running')
