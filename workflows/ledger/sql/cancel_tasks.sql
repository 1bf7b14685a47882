-- Every open task of the runs -> canceled; the state it came from is returned for its event.
UPDATE workflows_task AS task
SET state = 'canceled', reason = 'run canceled', finished_at = %(now)s, ready_at = NULL
FROM (
    SELECT id, state FROM workflows_task
    WHERE run_id = ANY(%(run_ids)s::uuid[])
      AND state IN ('waiting_dependencies', 'ready', 'queued', 'running', 'waiting_retry', 'waiting_approval')
) AS before
WHERE task.run_id = ANY(%(run_ids)s::uuid[]) AND task.id = before.id
RETURNING task.run_id, task.id, task.key, task.task_class_id, task.position, before.state
