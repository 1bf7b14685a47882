-- How the worker stands; whether a call with this number was answered before; and which task classes there are: ids
-- only ever appear, so their number and the highest tell whether a copy of them is still whole. No locks.
SELECT worker.state,
       EXISTS (SELECT 1 FROM dispatch_dispatch WHERE worker_id = %(worker_id)s AND claim_no = %(claim_no)s),
       (SELECT count(*) FROM workflows_taskclass), (SELECT max(id) FROM workflows_taskclass)
FROM dispatch_worker AS worker
WHERE worker.id = %(worker_id)s
