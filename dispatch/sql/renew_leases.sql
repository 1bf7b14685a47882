-- Renew what is still valid, never past the attempt's deadline.
UPDATE dispatch_dispatch
SET lease_expires_at = least(%(now)s + %(lease)s, attempt_deadline), renewed_at = %(now)s
WHERE id = ANY(%(ids)s::uuid[]) AND state = 'leased'
