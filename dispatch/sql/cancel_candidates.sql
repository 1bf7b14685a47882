-- Open runs whose cancel was asked for, oldest request first.
SELECT id FROM workflows_run
WHERE cancel_requested_at IS NOT NULL AND finished_at IS NULL
ORDER BY cancel_requested_at, id
LIMIT %(limit)s
