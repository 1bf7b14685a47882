-- pending -> leased, whole.
UPDATE dispatch_dispatch AS dispatch
SET state = 'leased', worker_id = %(worker_id)s, claim_no = %(claim_no)s, attempt_number = lease.number,
    generation = lease.generation, lease_digest = lease.digest, lease_expires_at = lease.expires_at,
    attempt_deadline = lease.deadline, leased_at = %(now)s, renewed_at = %(now)s
FROM unnest(%(ids)s::uuid[], %(numbers)s::int[], %(generations)s::bigint[], %(digests)s::bytea[],
            %(expires_ats)s::timestamptz[], %(deadlines)s::timestamptz[])
     AS lease(id, number, generation, digest, expires_at, deadline)
WHERE dispatch.id = lease.id AND dispatch.state = 'pending'
