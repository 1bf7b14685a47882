-- Classes that matter now: with something ready in an open run, or something pending.
SELECT class.id, class.tenant_id, class.executor_kind, class.requires, coalesce(pending.count, 0) AS pending,
       EXISTS (SELECT 1 FROM workflows_readyqueue AS queue
               WHERE queue.task_class_id = class.id AND queue.open AND queue.ready > 0) AS ready
FROM workflows_taskclass AS class
LEFT JOIN (SELECT task_class_id, count(*) AS count FROM dispatch_dispatch WHERE state = 'pending' GROUP BY task_class_id)
     AS pending ON pending.task_class_id = class.id
