-- Read runs that the operation has locked itself (skip-locked, in an order of its own).
SELECT id, tenant_id, version_id, state, revision, event_seq, concurrency, priority, created_at, started_at, finished_at, cancel_requested_at, last_dispatched_at, turn_at, traceparent,
       tasks_waiting_dependencies, tasks_ready, tasks_queued, tasks_running, tasks_waiting_retry, tasks_waiting_approval, tasks_succeeded, tasks_failed, tasks_canceled, tasks_skipped
FROM workflows_run
WHERE id = ANY(%(run_ids)s::uuid[])
ORDER BY id
