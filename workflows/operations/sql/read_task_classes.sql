-- The classes among these that exist already.
SELECT class.id, class.executor_kind, class.requires::text
FROM workflows_taskclass AS class
JOIN unnest(%(kinds)s::text[], %(requires)s::text[]) AS wanted(kind, requires)
  ON class.executor_kind = wanted.kind AND class.requires = wanted.requires::jsonb
WHERE class.tenant_id = %(tenant_id)s
