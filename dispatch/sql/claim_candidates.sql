-- One look before any lock: how the worker stands; whether a call with this number was answered before; which task
-- classes there are (ids only ever appear, so their number and the highest tell whether a copy of them is still
-- whole); and the runs with something pending for these classes, in the order of service.
-- Arrays and limits go through sub-selects, which hide their size from the planner: a size that it sees makes it plan
-- anew for every call, and planning takes longer than the statement.
SELECT worker.state,
       EXISTS (SELECT 1 FROM dispatch_dispatch WHERE worker_id = %(worker_id)s AND claim_no = %(claim_no)s) AS answered,
       (SELECT count(*) FROM workflows_taskclass) AS classes,
       (SELECT max(id) FROM workflows_taskclass) AS highest_class,
       ARRAY(
           SELECT head.run_id
           FROM (SELECT value::int AS class_id FROM json_array_elements_text(array_to_json(%(classes)s::int[]))) AS accepted
           CROSS JOIN LATERAL (
               SELECT run_id, seq FROM dispatch_dispatch
               WHERE state = 'pending' AND task_class_id = accepted.class_id
               ORDER BY seq LIMIT 256
           ) AS head
           GROUP BY head.run_id
           ORDER BY min(head.seq)
           LIMIT (SELECT %(runs)s::bigint)
       ) AS run_ids
FROM dispatch_worker AS worker
WHERE worker.id = %(worker_id)s
