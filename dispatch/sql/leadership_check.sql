-- The fence: one row while this very session leads under this epoch, held until the transaction ends.
SELECT 1 FROM dispatch_leadership
WHERE id = 1 AND epoch = %(epoch)s AND backend_pid = pg_backend_pid()
FOR SHARE
