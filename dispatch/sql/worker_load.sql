-- Under the worker's lock, in a new statement: what it holds, whether this call was answered meanwhile, and
-- whether a coordinator pass would find more to queue of what it accepts.
SELECT (SELECT count(*) FROM dispatch_dispatch WHERE worker_id = %(worker_id)s AND state = 'leased'),
       EXISTS (SELECT 1 FROM dispatch_dispatch WHERE worker_id = %(worker_id)s AND claim_no = %(claim_no)s),
       EXISTS (SELECT 1 FROM workflows_readyqueue
               WHERE open AND ready > 0 AND task_class_id = ANY(%(classes)s::int[]))
