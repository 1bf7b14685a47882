-- Keep the newest measurement. A former leader must not overwrite its successor's, unless that fell silent:
-- terms begin anew when the leadership row is made anew.
INSERT INTO observability_metricssnapshot AS kept (id, taken_at, data)
VALUES (1, clock_timestamp(), %(data)s::jsonb)
ON CONFLICT (id) DO UPDATE SET taken_at = EXCLUDED.taken_at, data = EXCLUDED.data
WHERE (kept.data ->> 'leader_epoch')::bigint <= (EXCLUDED.data ->> 'leader_epoch')::bigint
   OR kept.taken_at < EXCLUDED.taken_at - interval '10 seconds';
