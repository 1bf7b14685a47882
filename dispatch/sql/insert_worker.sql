-- A worker session begins.
INSERT INTO dispatch_worker (id, display_name, protocol_version, executor_kinds, tenant_id, labels, max_concurrency,
                             drills, state, session_digest, registered_at, last_heartbeat_at)
VALUES (%(id)s, %(display_name)s, %(protocol_version)s, %(executor_kinds)s, %(tenant_id)s, %(labels)s, %(max_concurrency)s,
        %(drills)s, 'active', %(session_digest)s, clock_timestamp(), clock_timestamp())
