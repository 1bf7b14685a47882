-- The attempts that begin (or, when refused, begin and fail) in this transaction.
INSERT INTO workflows_attempt (run_id, task_id, number, state, worker_id, worker_name, dispatch_id, generation,
                               started_at, deadline, finished_at, error_code, error_message, reason)
SELECT run_id, task_id, number, state, worker_id, worker_name, dispatch_id, generation,
       %(now)s, deadline, CASE WHEN state = 'running' THEN NULL ELSE %(now)s END, error_code, error_message, reason
FROM unnest(%(run_ids)s::uuid[], %(task_ids)s::bigint[], %(numbers)s::int[], %(states)s::text[],
            %(worker_ids)s::uuid[], %(worker_names)s::text[], %(dispatch_ids)s::uuid[], %(generations)s::bigint[],
            %(deadlines)s::timestamptz[], %(error_codes)s::text[], %(error_messages)s::text[], %(reasons)s::text[])
     AS born(run_id, task_id, number, state, worker_id, worker_name, dispatch_id, generation,
             deadline, error_code, error_message, reason)
