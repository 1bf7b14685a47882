-- The leader lives. No row: it no longer leads.
UPDATE dispatch_leadership SET beat_at = clock_timestamp()
WHERE id = 1 AND epoch = %(epoch)s AND backend_pid = pg_backend_pid()
