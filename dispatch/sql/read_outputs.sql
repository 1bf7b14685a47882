-- Outputs that inputs refer to.
SELECT task.run_id, task.key, task.output
FROM unnest(%(run_ids)s::uuid[], %(keys)s::text[]) AS wanted(run_id, key)
JOIN workflows_task AS task ON task.run_id = wanted.run_id AND task.key = wanted.key
WHERE task.state = 'succeeded'
