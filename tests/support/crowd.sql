-- Statements of tests/support/crowd.py, one after the other. Each table is analysed as it fills: a planner that takes
-- it for empty, as other tests left it, would join row by row.
INSERT INTO access_tenant (slug, name, turn_at, created_at)
SELECT 't' || n, 't' || n, now(), now()
FROM generate_series(1, 20) AS n;
ANALYZE access_tenant;

INSERT INTO workflows_workflow (tenant_id, name, latest_version, created_at, created_by)
SELECT id, 'flow', 1, now(), ''
FROM access_tenant;
ANALYZE workflows_workflow;

INSERT INTO workflows_workflowversion (workflow_id, number, definition, digest, task_count, source, created_at, created_by)
SELECT id, 1, '{}', '', 100, 'api', now(), ''
FROM workflows_workflow;
ANALYZE workflows_workflowversion;

INSERT INTO workflows_taskclass (tenant_id, executor_kind, requires)
SELECT id, kind, '{}'
FROM access_tenant, unnest(ARRAY['mock', 'python', 'other']) AS kind;
ANALYZE workflows_taskclass;

INSERT INTO workflows_run (id, tenant_id, workflow_id, version_id, state, revision, event_seq, priority, labels, params, concurrency, tasks_total, tasks_succeeded, turn_at, created_at, created_by, finished_at)
SELECT gen_random_uuid(), w.tenant_id, w.id, v.id, 'succeeded', 9, 50, 0, '{}', '{}', 10, 20, 20, now(), now(), '', now()
FROM workflows_workflow w
JOIN workflows_workflowversion v ON v.workflow_id = w.id, generate_series(1, 100);
ANALYZE workflows_run;

INSERT INTO workflows_run (id, tenant_id, workflow_id, version_id, state, revision, event_seq, priority, labels, params, concurrency, tasks_total, tasks_ready, turn_at, created_at, created_by)
SELECT gen_random_uuid(), w.tenant_id, w.id, v.id, 'running', 9, 50, 0, '{}', '{}', 1000, 100, 100, now(), now(), ''
FROM workflows_workflow w
JOIN workflows_workflowversion v ON v.workflow_id = w.id, generate_series(1, 2);
ANALYZE workflows_run;

UPDATE workflows_run SET cancel_requested_at = now()
WHERE id IN (SELECT id
FROM workflows_run
WHERE state = 'running' LIMIT 3);

INSERT INTO workflows_task (run_id, position, key, state, task_class_id, executor_kind, action, unmet_dependencies, attempts, finished_at)
SELECT r.id, n, 't' || n, 'succeeded', c.id, 'mock', 'noop', 0, 1, now()
FROM workflows_run r
JOIN workflows_taskclass c ON c.tenant_id = r.tenant_id AND c.executor_kind = 'mock', generate_series(0, 19) AS n
WHERE r.state = 'succeeded';
ANALYZE workflows_task;

INSERT INTO workflows_task (run_id, position, key, state, task_class_id, executor_kind, action, unmet_dependencies, attempts, ready_at)
SELECT r.id, n, 't' || n, (ARRAY['ready', 'queued', 'running', 'waiting_retry', 'waiting_dependencies'])[1 + n % 5], c.id, 'mock', 'noop',
CASE n % 5 WHEN 4 THEN 1 ELSE 0 END, 1,
CASE n % 5 WHEN 3 THEN now() + n * interval '1 minute' - interval '5 minutes' END
FROM workflows_run r
JOIN workflows_taskclass c ON c.tenant_id = r.tenant_id AND c.executor_kind = 'mock', generate_series(0, 99) AS n
WHERE r.state = 'running';
ANALYZE workflows_task;

INSERT INTO workflows_readyqueue (run_id, task_class_id, tenant_id, ready, open, turn_at)
SELECT r.id, c.id, r.tenant_id, 20, TRUE, now()
FROM workflows_run r
JOIN workflows_taskclass c ON c.tenant_id = r.tenant_id
WHERE r.state = 'running';

INSERT INTO workflows_readyqueue (run_id, task_class_id, tenant_id, ready, open, turn_at)
SELECT r.id, c.id, r.tenant_id, 20, FALSE, now()
FROM workflows_run r
JOIN workflows_taskclass c ON c.tenant_id = r.tenant_id
WHERE r.state = 'succeeded' AND c.executor_kind <> 'mock';

INSERT INTO workflows_run (id, tenant_id, workflow_id, version_id, state, revision, event_seq, priority, labels, params, concurrency, tasks_total, tasks_succeeded, turn_at, created_at, created_by, finished_at)
SELECT gen_random_uuid(), tenant_id, workflow_id, version_id, state, revision, event_seq, priority, labels, params, concurrency, tasks_total, tasks_succeeded, turn_at, created_at, created_by, finished_at
FROM workflows_run, generate_series(1, 5)
WHERE state = 'succeeded';
ANALYZE workflows_run;

INSERT INTO dispatch_worker (id, display_name, protocol_version, executor_kinds, labels, max_concurrency, drills, state, session_digest, registered_at, last_heartbeat_at, stopped_at)
SELECT gen_random_uuid(), 'w', 1, ARRAY['mock'], '{}', 1024, FALSE,
CASE WHEN n <= 10 THEN 'active' WHEN n <= 12 THEN 'draining' WHEN n <= 14 THEN 'offline' ELSE 'stopped' END, decode(md5(n::text), 'hex'), now(), now(),
CASE WHEN n > 14 THEN now() END
FROM generate_series(1, 500) AS n;
ANALYZE dispatch_worker;

INSERT INTO dispatch_dispatch (id, run_id, task_id, task_class_id, state, created_at)
SELECT gen_random_uuid(), run_id, id, task_class_id, 'pending', now()
FROM workflows_task
WHERE state = 'queued';
ANALYZE dispatch_dispatch;

INSERT INTO dispatch_dispatch (id, run_id, task_id, task_class_id, state, created_at, worker_id, claim_no, attempt_number, generation, renewed_at, lease_digest, lease_expires_at, attempt_deadline, leased_at, lost_at)
SELECT gen_random_uuid(), t.run_id, t.id, t.task_class_id, 'leased', now(), w.id, t.position, 1, nextval('dispatch_generation'), now(), '', now() + (t.position - 5) * interval '30 seconds', now() + interval '1 hour', now(),
CASE t.position WHEN 2 THEN now() END
FROM workflows_task t
JOIN (SELECT id, row_number() OVER () AS n
FROM dispatch_worker
WHERE state <> 'stopped') w ON w.n = 1 + t.id % 14
WHERE t.state = 'running';
ANALYZE dispatch_dispatch;

INSERT INTO dispatch_dispatch (id, run_id, task_id, task_class_id, state, created_at, worker_id, claim_no, attempt_number, generation, renewed_at, lease_digest, lease_expires_at, attempt_deadline, leased_at, finished_at, result_digest)
SELECT gen_random_uuid(), t.run_id, t.id, t.task_class_id, 'completed', now(), w.id, t.position, 1, nextval('dispatch_generation'), now(), '', now(), now() + interval '1 hour', now(), now(), ''
FROM workflows_task t
JOIN (SELECT id, row_number() OVER () AS n
FROM dispatch_worker) w ON w.n = 1 + t.id % 500
WHERE t.state = 'succeeded';
ANALYZE dispatch_dispatch;

INSERT INTO workflows_attempt (run_id, task_id, number, state, started_at, deadline, finished_at, dispatch_id)
SELECT run_id, task_id, 1,
CASE state WHEN 'leased' THEN 'running' ELSE 'succeeded' END, now(), now(), finished_at, id
FROM dispatch_dispatch
WHERE state IN ('leased', 'completed');

INSERT INTO workflows_stateevent (run_id, seq, at, entity, key, from_state, to_state, reason, actor)
SELECT id, n, now(), 'task', 't', '', 'ready', '', ''
FROM workflows_run, generate_series(1, 50) AS n;

INSERT INTO dispatch_leadership (id, epoch, holder) VALUES (1, 1, '') ON CONFLICT DO NOTHING;

INSERT INTO dispatch_liveness (id, since, seen_at) VALUES (1, now(), now()) ON CONFLICT DO NOTHING;

ANALYZE access_tenant, workflows_run, workflows_task, workflows_taskclass, workflows_readyqueue, workflows_attempt, workflows_stateevent, dispatch_worker, dispatch_dispatch;
