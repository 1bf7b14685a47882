-- One revision more per run, with its counters; the revision that was locked must still stand.
UPDATE workflows_run AS run
SET state = move.state, revision = run.revision + 1, event_seq = move.event_seq,
    started_at = move.started_at, finished_at = move.finished_at, cancel_requested_at = move.cancel_requested_at,
    last_dispatched_at = move.last_dispatched_at, turn_at = move.turn_at,
    tasks_waiting_dependencies = move.waiting_dependencies, tasks_ready = move.ready, tasks_queued = move.queued,
    tasks_running = move.running, tasks_waiting_retry = move.waiting_retry,
    tasks_waiting_approval = move.waiting_approval, tasks_succeeded = move.succeeded, tasks_failed = move.failed,
    tasks_canceled = move.canceled, tasks_skipped = move.skipped
FROM unnest(%(run_ids)s::uuid[], %(revisions)s::bigint[], %(states)s::text[], %(event_seqs)s::bigint[],
            %(started_ats)s::timestamptz[], %(finished_ats)s::timestamptz[], %(cancel_requested_ats)s::timestamptz[],
            %(last_dispatched_ats)s::timestamptz[], %(turn_ats)s::timestamptz[],
            %(waiting_dependencies)s::int[], %(ready)s::int[], %(queued)s::int[], %(running)s::int[],
            %(waiting_retry)s::int[], %(waiting_approval)s::int[], %(succeeded)s::int[], %(failed)s::int[],
            %(canceled)s::int[], %(skipped)s::int[])
     AS move(run_id, revision, state, event_seq, started_at, finished_at, cancel_requested_at, last_dispatched_at,
             turn_at, waiting_dependencies, ready, queued, running, waiting_retry, waiting_approval, succeeded, failed,
             canceled, skipped)
WHERE run.id = move.run_id AND run.revision = move.revision
