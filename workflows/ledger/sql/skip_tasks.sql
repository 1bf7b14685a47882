-- waiting_dependencies -> skipped: a task upstream failed. Those already skipped stay as they are.
UPDATE workflows_task AS task
SET state = 'skipped', reason = 'upstream task failed', finished_at = %(now)s
FROM unnest(%(run_ids)s::uuid[], %(positions)s::int[]) AS move(run_id, position)
WHERE task.run_id = move.run_id AND task.position = move.position AND task.state = 'waiting_dependencies'
RETURNING task.run_id, task.id, task.key, task.task_class_id, task.position
