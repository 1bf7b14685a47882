-- Tenants with quotas, and what they have queued and running: counted by class over what is open, which is little
-- whatever the history.
SELECT tenant.id, tenant.max_running, tenant.max_queued,
       coalesce(sum(pending.count), 0)::bigint AS queued, coalesce(sum(leased.count), 0)::bigint AS running
FROM access_tenant AS tenant
LEFT JOIN workflows_taskclass AS class ON class.tenant_id = tenant.id
LEFT JOIN (SELECT task_class_id, count(*) AS count FROM dispatch_dispatch WHERE state = 'pending' GROUP BY task_class_id)
     AS pending ON pending.task_class_id = class.id
LEFT JOIN (SELECT task_class_id, count(*) AS count FROM dispatch_dispatch WHERE state = 'leased' GROUP BY task_class_id)
     AS leased ON leased.task_class_id = class.id
WHERE tenant.max_running IS NOT NULL OR tenant.max_queued IS NOT NULL
GROUP BY tenant.id
