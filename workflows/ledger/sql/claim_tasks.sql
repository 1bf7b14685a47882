-- queued -> running: a worker claimed it; the attempt is born in this statement.
WITH move AS (
    SELECT * FROM unnest(%(run_ids)s::uuid[], %(task_ids)s::bigint[], %(numbers)s::int[], %(worker_ids)s::uuid[],
                         %(worker_names)s::text[], %(dispatch_ids)s::uuid[], %(generations)s::bigint[],
                         %(deadlines)s::timestamptz[])
                  AS move(run_id, task_id, number, worker_id, worker_name, dispatch_id, generation, deadline)
),
born AS (
    INSERT INTO workflows_attempt (run_id, task_id, number, state, worker_id, worker_name, dispatch_id, generation,
                                   started_at, deadline)
    SELECT run_id, task_id, number, 'running', worker_id, worker_name, dispatch_id, generation, %(now)s, deadline
    FROM move
)
UPDATE workflows_task AS task
SET state = 'running', reason = '', attempts = move.number, started_at = coalesce(task.started_at, %(now)s),
    progress_percent = NULL, progress_text = ''
FROM move
WHERE task.run_id = move.run_id AND task.id = move.task_id AND task.state = 'queued'
  AND task.attempts = move.number - 1
