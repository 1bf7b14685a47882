-- Runs with something pending for these classes, in the order of service. No locks.
SELECT run_id
FROM (
    SELECT head.run_id, head.seq
    FROM unnest(%(classes)s::int[]) AS accepted(class_id)
    CROSS JOIN LATERAL (
        SELECT run_id, seq FROM dispatch_dispatch
        WHERE state = 'pending' AND task_class_id = accepted.class_id
        ORDER BY seq LIMIT 256
    ) AS head
) AS heads
GROUP BY run_id
ORDER BY min(seq)
LIMIT %(runs)s
