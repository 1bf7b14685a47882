-- pending -> canceled: its task went back, or will never run.
UPDATE dispatch_dispatch SET state = 'canceled', finished_at = %(now)s
WHERE id = ANY(%(ids)s::uuid[]) AND state = 'pending'
