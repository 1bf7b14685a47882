-- I12: an open run has a row for each class of its tasks, with the number ready, whether they may be queued, and the
-- run's turn; a finished run has none.
SELECT coalesce(wanted.run_id, entry.run_id), format('class %%s', coalesce(wanted.class_id, entry.task_class_id)),
       format('stored %%s, counted %%s', (entry.ready, entry.open, entry.turn_at), (wanted.ready, wanted.open, wanted.turn_at))
FROM (
    SELECT run.id AS run_id, task.task_class_id AS class_id, count(*) FILTER (WHERE task.state = 'ready') AS ready,
           run.cancel_requested_at IS NULL
           AND run.tasks_queued + run.tasks_running < run.concurrency AS open, run.turn_at
    FROM workflows_run AS run JOIN workflows_task AS task ON task.run_id = run.id
    WHERE run.id = ANY(%(run_ids)s::uuid[]) AND run.state IN ('pending', 'running')
    GROUP BY run.id, task.task_class_id
) AS wanted
FULL JOIN (
    SELECT * FROM workflows_readyqueue WHERE run_id = ANY(%(run_ids)s::uuid[])
) AS entry ON entry.run_id = wanted.run_id AND entry.task_class_id = wanted.class_id
WHERE (entry.ready, entry.open, entry.turn_at) IS DISTINCT FROM (wanted.ready, wanted.open, wanted.turn_at)
