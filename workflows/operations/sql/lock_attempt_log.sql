-- How much the attempt has logged so far.
SELECT id, log_bytes, log_truncated FROM workflows_attempt
WHERE run_id = %(run_id)s AND task_id = %(task_id)s AND number = %(number)s
FOR NO KEY UPDATE
