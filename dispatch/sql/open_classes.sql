-- Classes that matter now: with something ready in an open run, or something pending; and on every row, for the
-- whole platform, how much is leased and whether any tenant has a quota.
SELECT class.id, class.tenant_id, class.executor_kind, class.requires, coalesce(pending.count, 0) AS pending,
       load.ready, totals.leased, totals.quotas
FROM workflows_taskclass AS class
LEFT JOIN (SELECT task_class_id, count(*) AS count FROM dispatch_dispatch WHERE state = 'pending' GROUP BY task_class_id)
     AS pending ON pending.task_class_id = class.id
CROSS JOIN LATERAL (
    SELECT EXISTS (SELECT 1 FROM workflows_readyqueue AS queue
                   WHERE queue.task_class_id = class.id AND queue.open AND queue.ready > 0) AS ready
) AS load
CROSS JOIN (
    SELECT (SELECT count(*) FROM dispatch_dispatch WHERE state = 'leased') AS leased,
           EXISTS (SELECT 1 FROM access_tenant WHERE max_running IS NOT NULL OR max_queued IS NOT NULL) AS quotas
) AS totals
WHERE pending.count > 0 OR load.ready
