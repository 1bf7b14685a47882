-- The next runs by id, and how large each is.
SELECT id, tasks_total FROM workflows_run WHERE id > %(after)s ORDER BY id LIMIT %(batch)s
