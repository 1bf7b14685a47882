-- Leases held by everybody together.
SELECT count(*) FROM dispatch_dispatch WHERE state = 'leased'
