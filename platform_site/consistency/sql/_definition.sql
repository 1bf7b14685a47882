-- The stored definition of a version.
SELECT definition FROM workflows_workflowversion WHERE id = %(version_id)s
