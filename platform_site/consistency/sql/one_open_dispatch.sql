-- I2: at most one dispatch of a task is pending or leased.
SELECT dispatch.run_id, task.key, format('%%s open dispatches', count(*))
FROM dispatch_dispatch AS dispatch
JOIN workflows_task AS task ON task.run_id = dispatch.run_id AND task.id = dispatch.task_id
WHERE dispatch.run_id = ANY(%(run_ids)s::uuid[]) AND dispatch.state IN ('pending', 'leased')
GROUP BY dispatch.run_id, task.key
HAVING count(*) > 1
