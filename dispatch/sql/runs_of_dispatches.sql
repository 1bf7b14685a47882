-- Which runs must be locked for these dispatches.
SELECT id, run_id FROM dispatch_dispatch WHERE id = ANY(%(ids)s::uuid[])
