-- Every open task of the runs -> canceled. The same rows as open_tasks, as the runs are locked. (A join that would tell
-- the old states here was planned as one loop inside the other on a table without statistics: half a minute.)
UPDATE workflows_task
SET state = 'canceled', reason = 'run canceled', finished_at = %(now)s, ready_at = NULL
WHERE run_id = ANY(%(run_ids)s::uuid[])
  AND state IN ('waiting_dependencies', 'ready', 'queued', 'running', 'waiting_retry', 'waiting_approval')
