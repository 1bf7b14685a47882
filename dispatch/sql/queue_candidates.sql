-- Runs whose turn it is, per open class and within its room, seated by tenant; all, or those among some. No locks.
WITH room AS (
    SELECT class_id, room FROM unnest(%(classes)s::int[], %(rooms)s::int[]) AS open(class_id, room)
),
candidate AS (
    SELECT head.run_id, head.tenant_id, head.turn_at
    FROM room
    CROSS JOIN LATERAL (
        SELECT run_id, tenant_id, turn_at FROM workflows_readyqueue
        WHERE task_class_id = room.class_id AND open AND ready > 0
          AND tenant_id <> ALL(%(full_tenants)s::int[]) AND run_id <> ALL(%(skipped)s::uuid[])
          AND (%(among)s::uuid[] IS NULL OR run_id = ANY(%(among)s::uuid[]))
        ORDER BY turn_at, run_id
        LIMIT least(room.room, %(batch)s)
    ) AS head
),
seat AS (
    SELECT run_id, tenant_id, row_number() OVER (PARTITION BY tenant_id ORDER BY min(turn_at), run_id) AS seat
    FROM candidate
    GROUP BY run_id, tenant_id
)
SELECT seat.run_id, seat.tenant_id, seat.seat::int
FROM seat JOIN access_tenant AS tenant ON tenant.id = seat.tenant_id
ORDER BY seat.seat, tenant.turn_at, tenant.id
LIMIT %(batch)s
