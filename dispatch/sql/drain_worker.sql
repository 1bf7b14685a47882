-- active -> draining while it holds leases, active or draining -> stopped when it holds none. It is locked.
UPDATE dispatch_worker AS worker
SET state = CASE WHEN held.leases > 0 THEN 'draining' ELSE 'stopped' END,
    stopped_at = CASE WHEN held.leases > 0 THEN NULL ELSE %(now)s END
FROM (SELECT count(*) AS leases FROM dispatch_dispatch WHERE worker_id = %(worker_id)s AND state = 'leased') AS held
WHERE worker.id = %(worker_id)s AND worker.state IN ('active', 'draining')
