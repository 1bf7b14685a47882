-- A new epoch, named after this session. Waits for the holders of FOR SHARE: the old term's last transaction.
UPDATE dispatch_leadership
SET epoch = epoch + 1,
    backend_pid = pg_backend_pid(),
    backend_start = (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()),
    holder = %(holder)s,
    since = clock_timestamp(),
    beat_at = clock_timestamp()
WHERE id = 1
RETURNING epoch
