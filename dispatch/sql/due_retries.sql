-- Runs with retries that are due. No locks.
SELECT DISTINCT run_id FROM (
    SELECT run_id FROM workflows_task
    WHERE state = 'waiting_retry' AND ready_at <= statement_timestamp() AND run_id <> ALL(%(skipped)s::uuid[])
    ORDER BY ready_at LIMIT %(tasks)s
) AS due
LIMIT %(batch)s
