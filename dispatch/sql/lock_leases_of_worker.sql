-- What the worker holds, by ascending id. No run lock: a renewal moves no task.
SELECT id, worker_id, state, lease_digest, lease_expires_at, attempt_deadline, claim_no
FROM dispatch_dispatch
WHERE worker_id = %(worker_id)s AND state = 'leased'
ORDER BY id
FOR NO KEY UPDATE
