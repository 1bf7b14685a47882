-- A move and its event commit together: the last event of a task or a run tells its state.
SELECT last.run_id, last.key, format('is %%s, its last event says %%s', coalesce(task.state, run.state), last.to_state)
FROM (
    SELECT DISTINCT ON (run_id, entity, key) run_id, entity, key, to_state
    FROM workflows_stateevent
    WHERE run_id = ANY(%(run_ids)s::uuid[]) AND entity IN ('run', 'task')
    ORDER BY run_id, entity, key, seq DESC
) AS last
JOIN workflows_run AS run ON run.id = last.run_id
LEFT JOIN workflows_task AS task ON last.entity = 'task' AND task.run_id = last.run_id AND task.key = last.key
WHERE last.to_state IS DISTINCT FROM CASE last.entity WHEN 'run' THEN run.state ELSE task.state END
