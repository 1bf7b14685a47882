-- The first pending dispatches of the locked runs. The inner choice is stable: whoever changes a pending
-- dispatch holds its run. Numbers drawn and not used leave gaps, which is all a generation promises.
SELECT picked.*, nextval('dispatch_generation') AS generation
FROM (
    SELECT dispatch.id, dispatch.seq, dispatch.run_id, dispatch.task_id, dispatch.traceparent,
           task.key, task.task_class_id, task.position, task.attempts, task.executor_kind, task.action
    FROM dispatch_dispatch AS dispatch
    JOIN workflows_task AS task ON task.run_id = dispatch.run_id AND task.id = dispatch.task_id
    WHERE dispatch.state = 'pending' AND dispatch.id IN (
        SELECT first.id
        FROM unnest(%(run_ids)s::uuid[]) AS locked(run_id)
        CROSS JOIN LATERAL (
            SELECT id, seq FROM dispatch_dispatch
            WHERE run_id = locked.run_id AND task_class_id = ANY(%(classes)s::int[]) AND state = 'pending'
            ORDER BY seq LIMIT %(slots)s
        ) AS first
        ORDER BY first.seq LIMIT %(slots)s
    )
    ORDER BY dispatch.seq
    FOR NO KEY UPDATE OF dispatch
) AS picked
ORDER BY picked.seq
