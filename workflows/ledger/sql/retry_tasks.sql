-- running -> waiting_retry: it failed, timed out or was interrupted, and may try again at ready_at.
-- The attempt ends in the same statement; one attempt too few, and no task moves, which the ledger notices.
-- Unfinished is running (a constraint says so), without inviting the partial index on running attempts, which a
-- planner without statistics would read whole.
WITH move AS (
    SELECT * FROM unnest(%(run_ids)s::uuid[], %(task_ids)s::bigint[], %(numbers)s::int[], %(states)s::text[],
                         %(ready_ats)s::timestamptz[], %(used)s::int[], %(reasons)s::text[], %(error_codes)s::text[],
                         %(error_messages)s::text[])
                  AS move(run_id, task_id, number, state, ready_at, used, reason, error_code, error_message)
),
ended AS (
    UPDATE workflows_attempt AS attempt
    SET state = move.state, finished_at = %(now)s, error_code = move.error_code, error_message = move.error_message,
        reason = move.reason
    FROM move
    WHERE attempt.run_id = move.run_id AND attempt.task_id = move.task_id AND attempt.number = move.number
      AND attempt.finished_at IS NULL
    RETURNING attempt.id
)
UPDATE workflows_task AS task
SET state = 'waiting_retry', reason = move.reason, ready_at = move.ready_at,
    attempts_used = task.attempts_used + move.used, error_code = move.error_code, error_message = move.error_message
FROM move
WHERE task.run_id = move.run_id AND task.id = move.task_id AND task.state = 'running'
  AND (SELECT count(*) FROM ended) = cardinality(%(task_ids)s::bigint[])
