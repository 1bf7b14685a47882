-- One row per class of the new run, also where nothing is ready yet: the flush only ever updates.
INSERT INTO workflows_readyqueue (run_id, task_class_id, tenant_id, ready, open, turn_at)
SELECT %(run_id)s, class_id, %(tenant_id)s, ready, TRUE, %(turn_at)s
FROM unnest(%(class_ids)s::int[], %(ready)s::int[]) AS class(class_id, ready)
