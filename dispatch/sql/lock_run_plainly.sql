-- One open run, waited for.
SELECT id, greatest(concurrency - tasks_queued - tasks_running, 0) AS head
FROM workflows_run
WHERE id = %(run_id)s AND state IN ('pending', 'running') AND cancel_requested_at IS NULL
FOR NO KEY UPDATE
