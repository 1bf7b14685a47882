-- Params that inputs refer to.
SELECT id, params FROM workflows_run WHERE id = ANY(%(run_ids)s::uuid[])
