-- leased -> expired.
UPDATE dispatch_dispatch SET state = 'expired', finished_at = %(now)s
WHERE id = ANY(%(ids)s::uuid[]) AND state = 'leased'
