-- Run and dispatch in one skip-locked statement; nothing is waited for. The limit counts what was locked, so leases
-- of a busy run keep nobody else's waiting.
SELECT dispatch.id, dispatch.run_id
FROM dispatch_dispatch AS dispatch
JOIN workflows_run AS run ON run.id = dispatch.run_id
WHERE dispatch.id = ANY(%(ids)s::uuid[]) AND dispatch.state = 'leased'
LIMIT %(limit)s
FOR NO KEY UPDATE OF run, dispatch SKIP LOCKED
