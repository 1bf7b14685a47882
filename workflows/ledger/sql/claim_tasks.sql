-- queued -> running: a worker claimed it; the attempt is born in this transaction.
UPDATE workflows_task AS task
SET state = 'running', reason = '', attempts = move.number, started_at = coalesce(task.started_at, %(now)s),
    progress_percent = NULL, progress_text = ''
FROM unnest(%(run_ids)s::uuid[], %(task_ids)s::bigint[], %(numbers)s::int[]) AS move(run_id, task_id, number)
WHERE task.run_id = move.run_id AND task.id = move.task_id AND task.state = 'queued'
  AND task.attempts = move.number - 1
