-- Claim a key for this transaction. Waits for a first insert in flight: if that commits, no row comes back
-- and the caller reads the other's record in a new statement; if it rolls back, the key is ours.
INSERT INTO access_idempotencyrecord (tenant_id, principal_id, operation, key, digest, expires_at)
VALUES (
    %(tenant_id)s,
    %(principal_id)s,
    %(operation)s,
    %(key)s,
    %(digest)s,
    statement_timestamp() + make_interval(days => %(days)s::integer)
)
ON CONFLICT (tenant_id, principal_id, operation, key) DO NOTHING
RETURNING id;
