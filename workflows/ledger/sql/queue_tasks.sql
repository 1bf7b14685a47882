-- ready -> queued: a dispatch was made for each.
-- IS NOT FALSE keeps the guard and hides it from the partial index on that state, which a planner without statistics
-- would read whole instead of looking the tasks up.
UPDATE workflows_task AS task
SET state = 'queued', reason = move.reason
FROM unnest(%(run_ids)s::uuid[], %(task_ids)s::bigint[], %(reasons)s::text[]) AS move(run_id, task_id, reason)
WHERE task.run_id = move.run_id AND task.id = move.task_id AND (task.state = 'ready') IS NOT FALSE
