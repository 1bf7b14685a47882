-- Leases that a heartbeat names and the worker no longer holds: revoked if they were its own.
SELECT id, worker_id, lease_digest FROM dispatch_dispatch WHERE id = ANY(%(ids)s::uuid[])
