-- Running attempts of the runs -> canceled.
UPDATE workflows_attempt AS attempt
SET state = 'canceled', finished_at = %(now)s, error_code = 'canceled', error_message = 'execution canceled',
    reason = 'run canceled'
FROM workflows_task AS task
WHERE attempt.run_id = ANY(%(run_ids)s::uuid[]) AND attempt.state = 'running' AND task.id = attempt.task_id
RETURNING attempt.run_id, task.key, attempt.number
