-- Leases that may have ended: run out, lost on their way, or of a worker that is gone. No locks. The time of the
-- statement, because no index serves a comparison with a clock that may move while it runs.
(SELECT id, run_id FROM dispatch_dispatch
 WHERE state = 'leased' AND lease_expires_at <= statement_timestamp() AND run_id <> ALL(%(skipped)s::uuid[])
 ORDER BY lease_expires_at LIMIT %(limit)s)
UNION
SELECT id, run_id FROM dispatch_dispatch
WHERE state = 'leased' AND lost_at IS NOT NULL AND run_id <> ALL(%(skipped)s::uuid[])
UNION
SELECT dispatch.id, dispatch.run_id FROM dispatch_worker AS worker
JOIN dispatch_dispatch AS dispatch ON dispatch.worker_id = worker.id AND dispatch.state = 'leased'
WHERE worker.state IN ('offline', 'stopped') AND dispatch.run_id <> ALL(%(skipped)s::uuid[])
LIMIT %(limit)s
