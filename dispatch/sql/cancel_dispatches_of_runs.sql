-- Everything open of canceled runs -> canceled. Their runs and then these rows are locked.
UPDATE dispatch_dispatch SET state = 'canceled', finished_at = %(now)s
WHERE run_id = ANY(%(run_ids)s::uuid[]) AND state IN ('pending', 'leased')
