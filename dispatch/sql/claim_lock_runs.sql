-- Lock the first claimable ones that nobody holds, in that order.
SELECT id
FROM workflows_run
WHERE id = ANY(%(run_ids)s::uuid[]) AND state IN ('pending', 'running') AND cancel_requested_at IS NULL
ORDER BY array_position(%(run_ids)s::uuid[], id)
LIMIT %(slots)s
FOR NO KEY UPDATE SKIP LOCKED
