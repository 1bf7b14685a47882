-- The worker, last in the lock order.
SELECT state, max_concurrency, display_name FROM dispatch_worker WHERE id = %(worker_id)s FOR NO KEY UPDATE
