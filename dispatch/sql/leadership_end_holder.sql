-- End the session of a leader whose beat is too old, and wait until it is gone. Pids come again, start times do not.
SELECT l.holder, l.beat_at, pg_terminate_backend(a.pid, %(wait_ms)s::bigint) AS gone
FROM dispatch_leadership l
JOIN pg_stat_activity a ON a.pid = l.backend_pid AND a.backend_start = l.backend_start
WHERE l.id = 1 AND l.beat_at < clock_timestamp() - %(timeout)s::interval
