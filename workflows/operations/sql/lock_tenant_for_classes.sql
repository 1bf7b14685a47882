-- One maker of classes at a time for a tenant, so that their number holds.
SELECT id FROM access_tenant WHERE id = %(tenant_id)s FOR NO KEY UPDATE
