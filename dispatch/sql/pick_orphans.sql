-- Orphaned dispatches of the locked runs, by ascending id, with their tasks.
SELECT dispatch.id AS dispatch_id, dispatch.run_id, dispatch.task_id, task.key, task.task_class_id, task.position
FROM dispatch_dispatch AS dispatch
JOIN workflows_task AS task ON task.run_id = dispatch.run_id AND task.id = dispatch.task_id
WHERE dispatch.run_id = ANY(%(run_ids)s::uuid[]) AND dispatch.state = 'pending'
  AND dispatch.task_class_id = ANY(%(classes)s::int[])
ORDER BY dispatch.id
LIMIT %(tasks)s
FOR NO KEY UPDATE OF dispatch
