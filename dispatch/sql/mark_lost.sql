-- Leased by an answer that never arrived; the next reap gives them back.
UPDATE dispatch_dispatch SET lost_at = %(now)s
WHERE id = ANY(%(ids)s::uuid[]) AND state = 'leased' AND lost_at IS NULL
