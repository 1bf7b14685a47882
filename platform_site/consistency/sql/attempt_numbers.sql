-- I4: attempts of a task are numbered from 1 without a gap, and the task knows how many there were.
SELECT task.run_id, task.key, format('%%s attempts, numbered to %%s, the task says %%s', rows.count, rows.last, task.attempts)
FROM workflows_task AS task
CROSS JOIN LATERAL (
    SELECT count(*) AS count, coalesce(max(number), 0) AS last FROM workflows_attempt
    WHERE run_id = task.run_id AND task_id = task.id
) AS rows
WHERE task.run_id = ANY(%(run_ids)s::uuid[]) AND (rows.count, rows.last) <> (task.attempts, task.attempts)
