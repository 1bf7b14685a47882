-- Tenants with quotas, and what they have queued and running.
SELECT tenant.id, tenant.max_running, tenant.max_queued,
       count(dispatch.id) FILTER (WHERE dispatch.state = 'pending') AS queued,
       count(dispatch.id) FILTER (WHERE dispatch.state = 'leased') AS running
FROM access_tenant AS tenant
LEFT JOIN workflows_taskclass AS class ON class.tenant_id = tenant.id
LEFT JOIN dispatch_dispatch AS dispatch
       ON dispatch.task_class_id = class.id AND dispatch.state IN ('pending', 'leased')
WHERE tenant.max_running IS NOT NULL OR tenant.max_queued IS NOT NULL
GROUP BY tenant.id
