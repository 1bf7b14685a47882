-- Free the session's advisory lock.
SELECT pg_advisory_unlock(%(first)s::int, %(second)s::int)
