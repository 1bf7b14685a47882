-- What an answered claim leased and the worker still holds, as claim_pending gives it. What a heartbeat called
-- lost is on its way back.
SELECT dispatch.id, dispatch.seq, dispatch.run_id, dispatch.task_id, dispatch.traceparent, task.key, task.task_class_id,
       task.position, dispatch.attempt_number - 1 AS attempts, task.executor_kind, task.action, dispatch.generation,
       dispatch.lease_expires_at, dispatch.attempt_deadline, run.version_id
FROM dispatch_dispatch AS dispatch
JOIN workflows_task AS task ON task.run_id = dispatch.run_id AND task.id = dispatch.task_id
JOIN workflows_run AS run ON run.id = dispatch.run_id
WHERE dispatch.worker_id = %(worker_id)s AND dispatch.claim_no = %(claim_no)s AND dispatch.state = 'leased'
  AND dispatch.lost_at IS NULL
ORDER BY dispatch.seq
