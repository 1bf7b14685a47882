-- The last measurement and its age, by the database's clock alone.
SELECT data, extract(epoch FROM clock_timestamp() - taken_at)::double precision
FROM observability_metricssnapshot
WHERE id = 1;
