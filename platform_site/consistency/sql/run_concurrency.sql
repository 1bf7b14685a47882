-- I7: queued and running tasks of a run stay within its concurrency.
SELECT run.id, 'run', format('%%s tasks queued or running, concurrency %%s', tasks.active, run.concurrency)
FROM workflows_run AS run
CROSS JOIN LATERAL (
    SELECT count(*) AS active FROM workflows_task WHERE run_id = run.id AND state IN ('queued', 'running')
) AS tasks
WHERE run.id = ANY(%(run_ids)s::uuid[]) AND tasks.active > run.concurrency
