-- Lock the first claimable ones that nobody holds, in the order given.
SELECT run.id
FROM unnest(%(run_ids)s::uuid[]) WITH ORDINALITY AS candidate(run_id, place)
JOIN workflows_run AS run ON run.id = candidate.run_id
WHERE run.state IN ('pending', 'running') AND run.cancel_requested_at IS NULL
ORDER BY candidate.place
LIMIT %(slots)s
FOR NO KEY UPDATE OF run SKIP LOCKED
