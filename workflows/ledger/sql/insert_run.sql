-- A run is born: pending, revision 0, with one event.
INSERT INTO workflows_run (id, tenant_id, workflow_id, version_id, state, revision, event_seq, priority, labels, params,
                           concurrency, tasks_total, tasks_waiting_dependencies, tasks_ready, turn_at, trigger,
                           traceparent, created_at, created_by)
VALUES (%(id)s, %(tenant_id)s, %(workflow_id)s, %(version_id)s, 'pending', 0, 1, %(priority)s, %(labels)s, %(params)s,
        %(concurrency)s, %(tasks_total)s, %(waiting)s, %(ready)s,
        %(turn_at)s, %(trigger)s,
        %(traceparent)s, %(now)s, %(created_by)s)
