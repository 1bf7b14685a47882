-- How many dispatches of each class wait, with what the class asks for.
SELECT c.id, c.tenant_id, c.executor_kind, c.requires, p.pending
FROM (SELECT task_class_id, count(*) AS pending FROM dispatch_dispatch WHERE state = 'pending' GROUP BY task_class_id) p
JOIN workflows_taskclass c ON c.id = p.task_class_id
