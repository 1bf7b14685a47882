-- I11, I12: what a task used of its retry budget is its attempts that failed, timed out or were interrupted, without
-- those that an outage of the control plane ended.
SELECT task.run_id, task.key, format('%%s used by its attempts, the task says %%s', rows.used, task.attempts_used)
FROM workflows_task AS task
CROSS JOIN LATERAL (
    SELECT count(*) AS used FROM workflows_attempt
    WHERE run_id = task.run_id AND task_id = task.id AND state IN ('failed', 'timed_out', 'interrupted')
      AND reason <> 'control_plane_outage'
) AS rows
WHERE task.run_id = ANY(%(run_ids)s::uuid[]) AND rows.used <> task.attempts_used
