-- Which runs must be locked for these dispatches.
-- Arrays and limits go through sub-selects, which hide their size from the planner: a size that it sees makes it plan
-- anew for every call, and planning takes longer than the statement.
SELECT id, run_id FROM dispatch_dispatch WHERE id = ANY(ARRAY(SELECT unnest(%(ids)s::uuid[])))
