-- Open runs among these that nobody holds, by ascending id.
SELECT id, greatest(concurrency - tasks_queued - tasks_running, 0) AS head
FROM workflows_run
WHERE id = ANY(%(run_ids)s::uuid[]) AND state IN ('pending', 'running') AND cancel_requested_at IS NULL
ORDER BY id
FOR NO KEY UPDATE SKIP LOCKED
