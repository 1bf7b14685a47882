-- Pools: active workers with equal kinds, scope and labels, and the slots they have together.
SELECT executor_kinds, tenant_id, labels, sum(max_concurrency)::bigint AS slots
FROM dispatch_worker
WHERE state = 'active'
GROUP BY executor_kinds, tenant_id, labels
