-- I7: a worker holds no more leases than it has slots, and a stopped one holds none.
SELECT NULL::uuid, format('worker %%s', worker.id), format('%%s leases, %%s slots, %%s', held.leases, worker.max_concurrency, worker.state)
FROM dispatch_worker AS worker
JOIN (SELECT worker_id, count(*) AS leases FROM dispatch_dispatch WHERE state = 'leased' GROUP BY worker_id) AS held
  ON held.worker_id = worker.id
WHERE held.leases > CASE worker.state WHEN 'stopped' THEN 0 ELSE worker.max_concurrency END
