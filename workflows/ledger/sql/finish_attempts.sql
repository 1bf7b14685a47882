-- running -> how it ended. Unfinished is running (a constraint says so), without inviting the partial index on running
-- attempts, which a planner without statistics would read whole.
UPDATE workflows_attempt AS attempt
SET state = move.state, finished_at = %(now)s, error_code = move.error_code, error_message = move.error_message,
    reason = move.reason
FROM unnest(%(run_ids)s::uuid[], %(task_ids)s::bigint[], %(numbers)s::int[], %(states)s::text[],
            %(error_codes)s::text[], %(error_messages)s::text[], %(reasons)s::text[])
     AS move(run_id, task_id, number, state, error_code, error_message, reason)
WHERE attempt.run_id = move.run_id AND attempt.task_id = move.task_id AND attempt.number = move.number
  AND attempt.finished_at IS NULL
