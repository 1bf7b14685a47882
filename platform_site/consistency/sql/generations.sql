-- I8: the generation grows from lease to lease of a task.
SELECT run_id, key, format('generation %%s of attempt %%s follows %%s', generation, attempt_number, before)
FROM (
    SELECT dispatch.run_id, task.key, dispatch.generation, dispatch.attempt_number,
           lag(dispatch.generation) OVER (PARTITION BY dispatch.task_id ORDER BY dispatch.attempt_number) AS before
    FROM dispatch_dispatch AS dispatch
    JOIN workflows_task AS task ON task.run_id = dispatch.run_id AND task.id = dispatch.task_id
    WHERE dispatch.run_id = ANY(%(run_ids)s::uuid[]) AND dispatch.generation IS NOT NULL
) AS lease
WHERE generation <= before
