-- Heard from it. No row: its session is over.
UPDATE dispatch_worker SET last_heartbeat_at = %(now)s
WHERE id = %(worker_id)s AND state IN ('active', 'draining')
RETURNING state
