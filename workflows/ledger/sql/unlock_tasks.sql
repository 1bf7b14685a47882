-- A dependency's first success: count it off, and waiting_dependencies -> ready where it was the last one.
-- Rows that are no longer waiting were skipped because another dependency failed.
UPDATE workflows_task AS task
SET unmet_dependencies = task.unmet_dependencies - move.met,
    state = CASE WHEN task.unmet_dependencies = move.met THEN 'ready' ELSE task.state END
FROM unnest(%(run_ids)s::uuid[], %(positions)s::int[], %(met)s::int[]) AS move(run_id, position, met)
WHERE task.run_id = move.run_id AND task.position = move.position AND task.map_index IS NULL
  AND task.state = 'waiting_dependencies'
RETURNING task.run_id, task.id, task.key, task.task_class_id, task.position, task.state
