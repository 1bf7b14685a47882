-- One pending dispatch per queued task, numbered in the order of the arrays; and the tenants that were served go to the
-- back of the wheel.
WITH served AS (
    UPDATE access_tenant SET turn_at = %(now)s WHERE id = ANY(%(tenant_ids)s::int[])
)
INSERT INTO dispatch_dispatch (id, run_id, task_id, task_class_id, state, created_at, traceparent)
SELECT id, run_id, task_id, class_id, 'pending', %(now)s, traceparent
FROM unnest(%(ids)s::uuid[], %(run_ids)s::uuid[], %(task_ids)s::bigint[], %(class_ids)s::int[], %(traceparents)s::text[])
     WITH ORDINALITY AS born(id, run_id, task_id, class_id, traceparent, position)
ORDER BY position
