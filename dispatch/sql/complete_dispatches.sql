-- leased -> completed, with the digest that makes a repeat a replay.
UPDATE dispatch_dispatch AS dispatch
SET state = 'completed', result_digest = result.digest, finished_at = %(now)s
FROM unnest(%(ids)s::uuid[], %(digests)s::bytea[]) AS result(id, digest)
WHERE dispatch.id = result.id AND dispatch.state = 'leased'
