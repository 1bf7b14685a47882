-- running -> succeeded: an accepted result.
-- The attempt ends in the same statement; one attempt too few, and no task moves, which the ledger notices.
-- Unfinished is running (a constraint says so), without inviting the partial index on running attempts, which a
-- planner without statistics would read whole.
WITH move AS (
    SELECT * FROM unnest(%(run_ids)s::uuid[], %(task_ids)s::bigint[], %(numbers)s::int[], %(outputs)s::text[])
                  AS move(run_id, task_id, number, output)
),
ended AS (
    UPDATE workflows_attempt AS attempt
    SET state = 'succeeded', finished_at = %(now)s, reason = 'result accepted'
    FROM move
    WHERE attempt.run_id = move.run_id AND attempt.task_id = move.task_id AND attempt.number = move.number
      AND attempt.finished_at IS NULL
    RETURNING attempt.id
)
UPDATE workflows_task AS task
SET state = 'succeeded', reason = '', output = move.output, finished_at = %(now)s, error_code = '', error_message = ''
FROM move
WHERE task.run_id = move.run_id AND task.id = move.task_id AND task.state = 'running'
  AND (SELECT count(*) FROM ended) = cardinality(%(task_ids)s::bigint[])
