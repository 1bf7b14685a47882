-- Due retries of the locked runs.
SELECT run_id, id AS task_id, key, task_class_id, position FROM workflows_task
WHERE run_id = ANY(%(run_ids)s::uuid[]) AND state = 'waiting_retry' AND ready_at <= statement_timestamp()
ORDER BY ready_at, id
LIMIT %(tasks)s
