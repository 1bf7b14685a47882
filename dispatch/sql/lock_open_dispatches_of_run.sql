-- The open dispatches of a run by ascending id, with the state of the worker that holds each. The run is locked.
SELECT dispatch.id, dispatch.worker_id, worker.state AS worker_state
FROM dispatch_dispatch AS dispatch LEFT JOIN dispatch_worker AS worker ON worker.id = dispatch.worker_id
WHERE dispatch.run_id = %(run_id)s AND dispatch.state IN ('pending', 'leased')
ORDER BY dispatch.id
FOR NO KEY UPDATE OF dispatch
