-- queued -> running -> failed in one step: its input cannot be resolved, so no worker ever sees it.
UPDATE workflows_task AS task
SET state = 'failed', reason = move.reason, attempts = move.number, attempts_used = task.attempts_used + 1,
    started_at = coalesce(task.started_at, %(now)s), finished_at = %(now)s,
    error_code = move.error_code, error_message = move.error_message
FROM unnest(%(run_ids)s::uuid[], %(task_ids)s::bigint[], %(numbers)s::int[], %(reasons)s::text[],
            %(error_codes)s::text[], %(error_messages)s::text[])
     AS move(run_id, task_id, number, reason, error_code, error_message)
WHERE task.run_id = move.run_id AND task.id = move.task_id AND task.state = 'queued'
  AND task.attempts = move.number - 1
