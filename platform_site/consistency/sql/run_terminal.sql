-- I6: a run is terminal exactly when all its tasks are, and its final state is the one they add up to.
SELECT run.id, 'run', format('is %%s, its tasks say %%s', run.state, coalesce(tasks.settled, 'not finished'))
FROM workflows_run AS run
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN bool_or(state NOT IN ('succeeded', 'failed', 'canceled', 'skipped')) THEN NULL
        WHEN bool_or(state = 'failed') THEN 'failed'
        WHEN bool_or(state = 'canceled') THEN 'canceled'
        ELSE 'succeeded'
    END AS settled
    FROM workflows_task WHERE run_id = run.id
) AS tasks
WHERE run.id = ANY(%(run_ids)s::uuid[])
  AND CASE
      WHEN run.state IN ('pending', 'running') THEN tasks.settled IS NOT NULL
      WHEN run.state = 'canceled' THEN tasks.settled IS NULL  -- a canceled run may have failed tasks of before
      ELSE tasks.settled IS DISTINCT FROM run.state
  END
