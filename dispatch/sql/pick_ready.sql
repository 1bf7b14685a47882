-- Ready tasks of the locked runs: each run's first ones within its head room, ranked so that every run gets its
-- first before any gets its second, within the room of each class and tenant.
WITH locked AS (
    SELECT * FROM unnest(%(run_ids)s::uuid[], %(tenants)s::int[], %(seats)s::int[], %(heads)s::int[], %(tenant_rooms)s::int[])
                  AS locked(run_id, tenant_id, seat, head, tenant_room)
),
room AS (
    SELECT * FROM unnest(%(classes)s::int[], %(rooms)s::int[]) AS room(class_id, room)
),
pick AS (
    SELECT task.id, task.key, task.position, task.task_class_id, locked.run_id, locked.tenant_id, locked.seat,
           locked.tenant_room, tenant.turn_at,
           row_number() OVER (PARTITION BY locked.run_id ORDER BY task.position, task.id) AS turn
    FROM locked
    JOIN access_tenant AS tenant ON tenant.id = locked.tenant_id
    CROSS JOIN LATERAL (
        SELECT id, key, position, task_class_id FROM workflows_task
        WHERE run_id = locked.run_id AND state = 'ready' AND task_class_id = ANY(%(classes)s::int[])
        ORDER BY position, id
        LIMIT least(locked.head, %(per_run)s)
    ) AS task
),
ranked AS (
    SELECT pick.*,
           row_number() OVER (PARTITION BY task_class_id ORDER BY turn, seat, turn_at, tenant_id) AS in_class,
           row_number() OVER (PARTITION BY tenant_id ORDER BY turn, seat) AS in_tenant
    FROM pick
)
SELECT ranked.run_id, ranked.id AS task_id, ranked.key, ranked.task_class_id, ranked.position, ranked.tenant_id
FROM ranked JOIN room ON room.class_id = ranked.task_class_id
WHERE ranked.in_class <= room.room AND ranked.in_tenant <= ranked.tenant_room
ORDER BY ranked.turn, ranked.seat, ranked.turn_at, ranked.tenant_id
LIMIT %(total)s
