-- Silent for too long, counted only while the control plane could have heard: not before it was there again, and
-- not past half of the allowance after it was last seen, or an outage of web processes alone would end every
-- session under a coordinator that runs. Locked by ascending id, as everywhere, and looked at again behind a lock that
-- was waited for. Reap then takes their leases.
UPDATE dispatch_worker AS worker SET state = 'offline'
FROM (
    SELECT silent.id
    FROM dispatch_worker AS silent, dispatch_liveness AS liveness
    WHERE liveness.id = 1 AND silent.state IN ('active', 'draining')
      AND least(clock_timestamp(), liveness.seen_at + %(offline_after)s / 2)
          - greatest(silent.last_heartbeat_at, liveness.since) > %(offline_after)s
    ORDER BY silent.id
    FOR NO KEY UPDATE OF silent
) AS locked
WHERE worker.id = locked.id
