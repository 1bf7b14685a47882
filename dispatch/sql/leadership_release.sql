-- A leader that leaves in order is not waited for.
UPDATE dispatch_leadership SET beat_at = NULL
WHERE id = 1 AND epoch = %(epoch)s AND backend_pid = pg_backend_pid()
