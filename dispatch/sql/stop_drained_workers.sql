-- draining -> stopped where no lease is left. The workers are locked.
UPDATE dispatch_worker AS worker SET state = 'stopped', stopped_at = %(now)s
WHERE worker.id = ANY(%(worker_ids)s::uuid[]) AND worker.state = 'draining'
  AND NOT EXISTS (SELECT 1 FROM dispatch_dispatch WHERE worker_id = worker.id AND state = 'leased')
