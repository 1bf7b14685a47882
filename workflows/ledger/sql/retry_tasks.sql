-- running -> waiting_retry: it failed, timed out or was interrupted, and may try again at ready_at.
UPDATE workflows_task AS task
SET state = 'waiting_retry', reason = move.reason, ready_at = move.ready_at,
    attempts_used = task.attempts_used + move.used, error_code = move.error_code, error_message = move.error_message
FROM unnest(%(run_ids)s::uuid[], %(task_ids)s::bigint[], %(ready_ats)s::timestamptz[], %(used)s::int[],
            %(reasons)s::text[], %(error_codes)s::text[], %(error_messages)s::text[])
     AS move(run_id, task_id, ready_at, used, reason, error_code, error_message)
WHERE task.run_id = move.run_id AND task.id = move.task_id AND task.state = 'running'
