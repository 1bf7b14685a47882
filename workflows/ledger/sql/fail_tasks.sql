-- running -> failed: a permanent failure, or the retry budget is spent.
UPDATE workflows_task AS task
SET state = 'failed', reason = move.reason, attempts_used = task.attempts_used + 1, finished_at = %(now)s,
    error_code = move.error_code, error_message = move.error_message
FROM unnest(%(run_ids)s::uuid[], %(task_ids)s::bigint[], %(reasons)s::text[],
            %(error_codes)s::text[], %(error_messages)s::text[])
     AS move(run_id, task_id, reason, error_code, error_message)
WHERE task.run_id = move.run_id AND task.id = move.task_id AND task.state = 'running'
