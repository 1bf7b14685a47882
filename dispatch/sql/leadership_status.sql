-- Who leads or led last; alive by the database's clock.
SELECT holder, epoch, since, beat_at,
       coalesce(beat_at >= clock_timestamp() - %(timeout)s::interval, false) AS alive
FROM dispatch_leadership
WHERE id = 1
