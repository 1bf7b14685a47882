-- Ready counts by class, and for every class of a run whether it may be queued and when its turn comes.
UPDATE workflows_readyqueue AS queue
SET ready = queue.ready + change.delta, open = change.open, turn_at = change.turn_at
FROM (
    SELECT entry.id, run.open, run.turn_at, coalesce(class.delta, 0) AS delta
    FROM unnest(%(run_ids)s::uuid[], %(opens)s::bool[], %(turn_ats)s::timestamptz[]) AS run(run_id, open, turn_at)
    JOIN workflows_readyqueue AS entry ON entry.run_id = run.run_id
    LEFT JOIN unnest(%(delta_runs)s::uuid[], %(delta_classes)s::int[], %(deltas)s::int[])
         AS class(run_id, class_id, delta) ON class.run_id = entry.run_id AND class.class_id = entry.task_class_id
    WHERE class.delta IS NOT NULL OR entry.open <> run.open OR entry.turn_at <> run.turn_at
) AS change
WHERE queue.id = change.id
