-- Runs with something pending of classes that nobody accepts any more. No locks.
SELECT DISTINCT run_id FROM (
    SELECT run_id FROM dispatch_dispatch
    WHERE state = 'pending' AND task_class_id = ANY(%(classes)s::int[]) AND run_id <> ALL(%(skipped)s::uuid[])
    ORDER BY seq LIMIT %(tasks)s
) AS orphaned
LIMIT %(batch)s
