-- I12: the counters of a run are what its tasks say.
SELECT run.id, 'run', format('stored %%s, counted %%s', stored.counts, counted.counts)
FROM workflows_run AS run
CROSS JOIN LATERAL (
    SELECT jsonb_build_object(
        'total', run.tasks_total, 'waiting_dependencies', run.tasks_waiting_dependencies, 'ready', run.tasks_ready,
        'queued', run.tasks_queued, 'running', run.tasks_running, 'waiting_retry', run.tasks_waiting_retry,
        'waiting_approval', run.tasks_waiting_approval, 'succeeded', run.tasks_succeeded,
        'failed', run.tasks_failed, 'canceled', run.tasks_canceled, 'skipped', run.tasks_skipped) AS counts
) AS stored
CROSS JOIN LATERAL (
    SELECT jsonb_build_object(
        'total', count(*),
        'waiting_dependencies', count(*) FILTER (WHERE state = 'waiting_dependencies'),
        'ready', count(*) FILTER (WHERE state = 'ready'),
        'queued', count(*) FILTER (WHERE state = 'queued'),
        'running', count(*) FILTER (WHERE state = 'running'),
        'waiting_retry', count(*) FILTER (WHERE state = 'waiting_retry'),
        'waiting_approval', count(*) FILTER (WHERE state = 'waiting_approval'),
        'succeeded', count(*) FILTER (WHERE state = 'succeeded'),
        'failed', count(*) FILTER (WHERE state = 'failed'),
        'canceled', count(*) FILTER (WHERE state = 'canceled'),
        'skipped', count(*) FILTER (WHERE state = 'skipped')) AS counts
    FROM workflows_task WHERE run_id = run.id
) AS counted
WHERE run.id = ANY(%(run_ids)s::uuid[]) AND stored.counts <> counted.counts
