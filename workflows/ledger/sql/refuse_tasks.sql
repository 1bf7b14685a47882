-- queued -> running -> failed in one step, with an attempt that no worker saw: its input cannot be resolved.
WITH move AS (
    SELECT * FROM unnest(%(run_ids)s::uuid[], %(task_ids)s::bigint[], %(numbers)s::int[], %(dispatch_ids)s::uuid[],
                         %(deadlines)s::timestamptz[], %(reasons)s::text[], %(error_codes)s::text[],
                         %(error_messages)s::text[])
                  AS move(run_id, task_id, number, dispatch_id, deadline, reason, error_code, error_message)
),
born AS (
    INSERT INTO workflows_attempt (run_id, task_id, number, state, dispatch_id, started_at, deadline, finished_at,
                                   error_code, error_message, reason)
    SELECT run_id, task_id, number, 'failed', dispatch_id, %(now)s, deadline, %(now)s, error_code, error_message, reason
    FROM move
)
UPDATE workflows_task AS task
SET state = 'failed', reason = move.reason, attempts = move.number, attempts_used = task.attempts_used + 1,
    started_at = coalesce(task.started_at, %(now)s), finished_at = %(now)s,
    error_code = move.error_code, error_message = move.error_message
FROM move
WHERE task.run_id = move.run_id AND task.id = move.task_id AND task.state = 'queued'
  AND task.attempts = move.number - 1
