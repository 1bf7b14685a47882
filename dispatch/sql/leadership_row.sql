-- The one row, for whoever needs it first.
INSERT INTO dispatch_leadership (id, epoch, holder) VALUES (1, 0, '') ON CONFLICT (id) DO NOTHING
