-- The account of a transaction, in one statement: its events, the ready counts by class with whether a run
-- may be queued and when its turn comes, and one revision more per run with its counters. The revision that was locked
-- must still stand.
WITH event AS (
    INSERT INTO workflows_stateevent (run_id, seq, at, entity, key, from_state, to_state, reason, actor)
    SELECT run_id, seq, %(now)s, entity, key, from_state, to_state, reason, %(actor)s
    FROM unnest(%(event_runs)s::uuid[], %(event_seqs)s::bigint[], %(entities)s::text[], %(keys)s::text[],
                %(from_states)s::text[], %(to_states)s::text[], %(reasons)s::text[])
         AS event(run_id, seq, entity, key, from_state, to_state, reason)
),
queue AS (
    UPDATE workflows_readyqueue AS queue
    SET ready = queue.ready + change.delta, open = change.open, turn_at = change.turn_at
    FROM (
        SELECT entry.id, moved.open, moved.turn_at, coalesce(class.delta, 0) AS delta
        FROM unnest(%(queue_runs)s::uuid[], %(queue_opens)s::bool[], %(queue_turns)s::timestamptz[])
             AS moved(run_id, open, turn_at)
        JOIN workflows_readyqueue AS entry ON entry.run_id = moved.run_id
        LEFT JOIN unnest(%(delta_runs)s::uuid[], %(delta_classes)s::int[], %(deltas)s::int[])
             AS class(run_id, class_id, delta) ON class.run_id = entry.run_id AND class.class_id = entry.task_class_id
        WHERE class.delta IS NOT NULL OR entry.open <> moved.open OR entry.turn_at <> moved.turn_at
    ) AS change
    WHERE queue.id = change.id
)
UPDATE workflows_run AS run
SET state = move.state, revision = run.revision + 1, event_seq = move.event_seq,
    started_at = move.started_at, finished_at = move.finished_at, cancel_requested_at = move.cancel_requested_at,
    last_dispatched_at = move.last_dispatched_at, turn_at = move.turn_at,
    tasks_waiting_dependencies = move.waiting_dependencies, tasks_ready = move.ready, tasks_queued = move.queued,
    tasks_running = move.running, tasks_waiting_retry = move.waiting_retry,
    tasks_waiting_approval = move.waiting_approval, tasks_succeeded = move.succeeded, tasks_failed = move.failed,
    tasks_canceled = move.canceled, tasks_skipped = move.skipped
FROM unnest(%(run_ids)s::uuid[], %(revisions)s::bigint[], %(states)s::text[], %(last_seqs)s::bigint[],
            %(started_ats)s::timestamptz[], %(finished_ats)s::timestamptz[], %(cancel_requested_ats)s::timestamptz[],
            %(last_dispatched_ats)s::timestamptz[], %(turn_ats)s::timestamptz[],
            %(waiting_dependencies)s::int[], %(ready)s::int[], %(queued)s::int[], %(running)s::int[],
            %(waiting_retry)s::int[], %(waiting_approval)s::int[], %(succeeded)s::int[], %(failed)s::int[],
            %(canceled)s::int[], %(skipped)s::int[])
     AS move(run_id, revision, state, event_seq, started_at, finished_at, cancel_requested_at, last_dispatched_at,
             turn_at, waiting_dependencies, ready, queued, running, waiting_retry, waiting_approval, succeeded, failed,
             canceled, skipped)
WHERE run.id = move.run_id AND run.revision = move.revision
