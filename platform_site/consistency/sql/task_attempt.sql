-- A task is running exactly while its last attempt is, and no other attempt of it is.
SELECT task.run_id, task.key, format('is %%s with %%s running attempts', task.state, rows.running)
FROM workflows_task AS task
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE state = 'running') AS running,
           count(*) FILTER (WHERE state = 'running' AND number = task.attempts) AS last
    FROM workflows_attempt WHERE run_id = task.run_id AND task_id = task.id
) AS rows
WHERE task.run_id = ANY(%(run_ids)s::uuid[])
  AND (rows.running, rows.last) <> CASE task.state WHEN 'running' THEN (1::bigint, 1::bigint) ELSE (0::bigint, 0::bigint) END
