-- I12: a run's turn is what its last dispatch, its age and its priority say.
SELECT id, 'run', format('turn at %%s', turn_at)
FROM workflows_run
WHERE id = ANY(%(run_ids)s::uuid[])
  AND turn_at <> coalesce(last_dispatched_at, created_at - interval '10 seconds') - priority * interval '5 seconds'
