-- The control plane answers. A gap longer than allowed restarts the time since which silence counts.
INSERT INTO dispatch_liveness (id, since, seen_at) VALUES (1, clock_timestamp(), clock_timestamp())
ON CONFLICT (id) DO UPDATE
SET since = CASE
        WHEN dispatch_liveness.seen_at < clock_timestamp() - %(gap)s::interval THEN clock_timestamp()
        ELSE dispatch_liveness.since
    END,
    seen_at = greatest(dispatch_liveness.seen_at, clock_timestamp())
