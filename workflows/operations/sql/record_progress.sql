-- The latest progress of a running task.
UPDATE workflows_task SET progress_percent = coalesce(%(percent)s::smallint, progress_percent), progress_text = %(text)s
WHERE run_id = %(run_id)s AND id = %(task_id)s AND state = 'running'
