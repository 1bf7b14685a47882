-- Everything was held by others: wait for one, under a short lock_timeout.
SELECT id
FROM workflows_run
WHERE id = %(run_id)s AND state IN ('pending', 'running') AND cancel_requested_at IS NULL
FOR NO KEY UPDATE
