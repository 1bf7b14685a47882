-- Every open task of the locked runs, with the state that its event will name.
SELECT run_id, id, key, task_class_id, position, state FROM workflows_task
WHERE run_id = ANY(%(run_ids)s::uuid[])
  AND state IN ('waiting_dependencies', 'ready', 'queued', 'running', 'waiting_retry', 'waiting_approval')
ORDER BY run_id, position, id
