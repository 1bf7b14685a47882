-- The first pending dispatches of the locked runs. The inner choice is stable: whoever changes a pending
-- dispatch holds its run. Numbers drawn and not used leave gaps, which is all a generation promises.
-- Arrays and limits go through sub-selects, which hide their size from the planner: a size that it sees makes it plan
-- anew for every call, and planning takes longer than the statement.
SELECT picked.*, nextval('dispatch_generation') AS generation
FROM (
    SELECT dispatch.id, dispatch.seq, dispatch.run_id, dispatch.task_id, dispatch.traceparent,
           task.key, task.task_class_id, task.position, task.attempts, task.executor_kind, task.action
    FROM dispatch_dispatch AS dispatch
    JOIN workflows_task AS task ON task.run_id = dispatch.run_id AND task.id = dispatch.task_id
    WHERE dispatch.state = 'pending' AND dispatch.id IN (
        SELECT first.id
        FROM (SELECT value::uuid AS run_id FROM json_array_elements_text(array_to_json(%(run_ids)s::uuid[]))) AS locked
        CROSS JOIN LATERAL (
            SELECT id, seq FROM dispatch_dispatch
            WHERE run_id = locked.run_id AND task_class_id = ANY(ARRAY(SELECT unnest(%(classes)s::int[]))) AND state = 'pending'
            ORDER BY seq LIMIT (SELECT %(slots)s::bigint)
        ) AS first
        ORDER BY first.seq LIMIT (SELECT %(slots)s::bigint)
    )
    ORDER BY dispatch.seq
    FOR NO KEY UPDATE OF dispatch
) AS picked
ORDER BY picked.seq
