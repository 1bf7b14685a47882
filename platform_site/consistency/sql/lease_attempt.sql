-- A lease and the attempt that it is of name each other: number, worker, generation, deadline.
SELECT dispatch.run_id, task.key, format('dispatch %%s', dispatch.id)
FROM dispatch_dispatch AS dispatch
JOIN workflows_task AS task ON task.run_id = dispatch.run_id AND task.id = dispatch.task_id
LEFT JOIN workflows_attempt AS attempt
       ON attempt.run_id = dispatch.run_id AND attempt.task_id = dispatch.task_id
      AND attempt.number = dispatch.attempt_number
WHERE dispatch.run_id = ANY(%(run_ids)s::uuid[]) AND dispatch.state = 'leased'
  AND (attempt.dispatch_id, attempt.worker_id, attempt.generation, attempt.deadline)
      IS DISTINCT FROM (dispatch.id, dispatch.worker_id, dispatch.generation, dispatch.attempt_deadline)
