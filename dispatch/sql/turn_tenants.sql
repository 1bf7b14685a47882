-- Tenants that were served go to the back of the wheel.
UPDATE access_tenant SET turn_at = %(now)s WHERE id = ANY(%(tenant_ids)s::int[])
