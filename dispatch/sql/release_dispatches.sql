-- leased -> released.
UPDATE dispatch_dispatch SET state = 'released', finished_at = %(now)s
WHERE id = ANY(%(ids)s::uuid[]) AND state = 'leased'
