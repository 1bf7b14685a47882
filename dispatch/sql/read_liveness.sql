-- Since when the control plane has been answering without a break; while it does not answer, since now.
SELECT CASE WHEN seen_at < clock_timestamp() - %(gap)s::interval THEN clock_timestamp() ELSE since END
FROM dispatch_liveness WHERE id = 1
