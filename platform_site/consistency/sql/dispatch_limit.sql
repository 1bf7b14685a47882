-- I7: pending and leased together stay within the global limit.
SELECT NULL::uuid, 'platform', format('%%s dispatches open, the limit is %%s', count(*), %(dispatch_limit)s::int)
FROM dispatch_dispatch
WHERE state IN ('pending', 'leased')
HAVING count(*) > %(dispatch_limit)s::int
