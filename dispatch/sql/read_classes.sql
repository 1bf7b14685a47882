-- The classes of these kinds, for the compatibility predicate.
SELECT id, tenant_id, executor_kind, requires
FROM workflows_taskclass
WHERE executor_kind = ANY(%(kinds)s::text[]) AND (%(tenant_id)s::int IS NULL OR tenant_id = %(tenant_id)s::int)
