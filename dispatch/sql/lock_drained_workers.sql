-- Draining workers, by ascending id; whether they still hold something is asked under the lock.
SELECT id FROM dispatch_worker
WHERE state = 'draining' AND (%(worker_ids)s::uuid[] IS NULL OR id = ANY(%(worker_ids)s::uuid[]))
ORDER BY id
FOR NO KEY UPDATE
