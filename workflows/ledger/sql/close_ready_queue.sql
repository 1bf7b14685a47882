-- A settled run has nothing ready any more.
DELETE FROM workflows_readyqueue WHERE run_id = ANY(%(run_ids)s::uuid[])
