-- running -> succeeded: an accepted result.
UPDATE workflows_task AS task
SET state = 'succeeded', reason = '', output = move.output,
    finished_at = %(now)s, error_code = '', error_message = ''
FROM unnest(%(run_ids)s::uuid[], %(task_ids)s::bigint[], %(outputs)s::text[]) AS move(run_id, task_id, output)
WHERE task.run_id = move.run_id AND task.id = move.task_id AND task.state = 'running'
