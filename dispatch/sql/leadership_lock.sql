-- Try for the session's advisory lock; never waits.
SELECT pg_try_advisory_lock(%(first)s::int, %(second)s::int)
