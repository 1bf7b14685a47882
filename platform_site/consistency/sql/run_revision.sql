-- I12: the revision counts the transactions that changed a run after its birth; the events of one share their time.
SELECT run.id, 'run', format('revision %%s, %%s changes in its events', run.revision, events.changes - 1)
FROM workflows_run AS run
CROSS JOIN LATERAL (
    SELECT count(DISTINCT at) AS changes FROM workflows_stateevent WHERE run_id = run.id
) AS events
WHERE run.id = ANY(%(run_ids)s::uuid[]) AND run.revision <> events.changes - 1
