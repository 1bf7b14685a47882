-- Queue, fleet and open tasks at one moment. Cost follows what is open, never the history:
-- open runs are reached tenant by tenant, through run_by_state_newest.
WITH waiting AS (
    SELECT count(*) AS pending, min(created_at) AS oldest_at FROM dispatch_dispatch WHERE state = 'pending'
),
held AS (
    SELECT worker_id, count(*) AS leases FROM dispatch_dispatch WHERE state = 'leased' GROUP BY worker_id
),
fleet AS (
    SELECT count(*) FILTER (WHERE w.state = 'active') AS active,
           count(*) FILTER (WHERE w.state = 'draining') AS draining,
           coalesce(sum(greatest(w.max_concurrency - coalesce(h.leases, 0), 0))
                    FILTER (WHERE w.state = 'active'), 0) AS free_slots
    FROM dispatch_worker w LEFT JOIN held h ON h.worker_id = w.id
    WHERE w.state IN ('active', 'draining')
),
open_tasks AS (
    SELECT coalesce(sum(r.tasks_waiting_dependencies), 0) AS waiting_dependencies,
           coalesce(sum(r.tasks_ready), 0) AS ready,
           coalesce(sum(r.tasks_queued), 0) AS queued,
           coalesce(sum(r.tasks_running), 0) AS running,
           coalesce(sum(r.tasks_waiting_retry), 0) AS waiting_retry,
           coalesce(sum(r.tasks_waiting_approval), 0) AS waiting_approval,
           coalesce(sum(r.tasks_succeeded), 0) AS succeeded,
           coalesce(sum(r.tasks_failed), 0) AS failed,
           coalesce(sum(r.tasks_canceled), 0) AS canceled,
           coalesce(sum(r.tasks_skipped), 0) AS skipped
    FROM access_tenant t
    JOIN workflows_run r ON r.tenant_id = t.id AND r.state IN ('pending', 'running')
)
SELECT clock_timestamp() AS taken_at,
       coalesce((SELECT epoch FROM dispatch_leadership WHERE id = 1), 0) AS leader_epoch,
       waiting.pending,
       coalesce((SELECT sum(leases) FROM held), 0)::bigint AS leased,
       coalesce(extract(epoch FROM clock_timestamp() - waiting.oldest_at), 0)::float8 AS oldest_pending_seconds,
       fleet.active,
       fleet.draining,
       fleet.free_slots::bigint AS free_slots,
       to_jsonb(open_tasks)::text AS tasks
FROM waiting, fleet, open_tasks
