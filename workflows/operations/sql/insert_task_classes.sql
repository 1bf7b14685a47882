-- Make the missing classes, unless the tenant would have too many. A concurrent maker of the same ones wins.
INSERT INTO workflows_taskclass (tenant_id, executor_kind, requires)
SELECT %(tenant_id)s, kind, requires::jsonb
FROM unnest(%(kinds)s::text[], %(requires)s::text[]) AS missing(kind, requires)
WHERE (SELECT count(*) FROM workflows_taskclass WHERE tenant_id = %(tenant_id)s)
      + cardinality(%(kinds)s::text[]) <= %(most)s
ON CONFLICT (tenant_id, executor_kind, requires) DO UPDATE SET executor_kind = excluded.executor_kind
RETURNING id
