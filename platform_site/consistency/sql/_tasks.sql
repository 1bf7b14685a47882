-- States and open dependencies of every task, for comparison with the graph.
SELECT run.id, run.version_id, task.key, task.position, task.state, task.unmet_dependencies
FROM workflows_run AS run JOIN workflows_task AS task ON task.run_id = run.id
WHERE run.id = ANY(%(run_ids)s::uuid[]) AND task.map_index IS NULL
ORDER BY run.id, task.position
