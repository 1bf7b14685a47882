-- End the session of a leader that was not heard of for too long, and wait until it is gone. One at work is heard of by
-- what it does: a long cancel is many statements, each of them young. Pids come again, start times do not.
SELECT l.holder, l.beat_at, pg_terminate_backend(a.pid, %(wait_ms)s::bigint) AS gone
FROM dispatch_leadership l
JOIN pg_stat_activity a ON a.pid = l.backend_pid AND a.backend_start = l.backend_start
WHERE l.id = 1 AND greatest(l.beat_at, a.state_change, a.query_start) < clock_timestamp() - %(timeout)s::interval
