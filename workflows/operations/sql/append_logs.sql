-- Lines in the order they were sent, and the attempt's account of them.
WITH added AS (
    INSERT INTO workflows_attemptlog (run_id, attempt_id, level, text, cleaned)
    SELECT %(run_id)s, %(attempt_id)s, level, text, cleaned
    FROM unnest(%(levels)s::text[], %(texts)s::text[], %(cleaned)s::bool[])
         WITH ORDINALITY AS line(level, text, cleaned, position)
    ORDER BY position
)
UPDATE workflows_attempt SET log_bytes = %(used)s, log_truncated = %(truncated)s
WHERE run_id = %(run_id)s AND id = %(attempt_id)s
