-- Lock runs plainly by ascending id (the lock order of every operation) and read what the ledger needs.
SELECT id, tenant_id, version_id, state, revision, event_seq, concurrency, priority, created_at, started_at, finished_at, cancel_requested_at, last_dispatched_at, turn_at, traceparent,
       tasks_waiting_dependencies, tasks_ready, tasks_queued, tasks_running, tasks_waiting_retry, tasks_waiting_approval, tasks_succeeded, tasks_failed, tasks_canceled, tasks_skipped
FROM workflows_run
WHERE id = ANY(%(run_ids)s::uuid[])
ORDER BY id
FOR NO KEY UPDATE
