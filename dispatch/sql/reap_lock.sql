-- Run and dispatch in one skip-locked statement; nothing is waited for.
SELECT dispatch.id, dispatch.run_id
FROM dispatch_dispatch AS dispatch
JOIN workflows_run AS run ON run.id = dispatch.run_id
WHERE dispatch.id = ANY(%(ids)s::uuid[]) AND dispatch.state = 'leased'
FOR NO KEY UPDATE OF run, dispatch SKIP LOCKED
