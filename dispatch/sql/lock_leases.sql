-- The dispatches by ascending id, with the task each is of and the worker it names. Their runs are locked.
-- Arrays and limits go through sub-selects, which hide their size from the planner: a size that it sees makes it plan
-- anew for every call, and planning takes longer than the statement.
SELECT dispatch.id, dispatch.run_id, dispatch.task_id, dispatch.state, dispatch.worker_id, dispatch.attempt_number,
       dispatch.lease_digest, dispatch.lease_expires_at, dispatch.attempt_deadline, dispatch.result_digest,
       dispatch.leased_at, dispatch.renewed_at, dispatch.lost_at,
       worker.state AS worker_state, task.key, task.task_class_id, task.position, task.attempts_used
FROM dispatch_dispatch AS dispatch
JOIN workflows_task AS task ON task.run_id = dispatch.run_id AND task.id = dispatch.task_id
LEFT JOIN dispatch_worker AS worker ON worker.id = dispatch.worker_id
WHERE dispatch.id = ANY(ARRAY(SELECT unnest(%(ids)s::uuid[])))
ORDER BY dispatch.id
FOR NO KEY UPDATE OF dispatch
