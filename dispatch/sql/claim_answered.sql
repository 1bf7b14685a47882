-- Was a call with this number answered before? And which task classes are there: ids only ever appear, so their
-- number and the highest tell whether a copy of them is still whole.
SELECT EXISTS (SELECT 1 FROM dispatch_dispatch WHERE worker_id = %(worker_id)s AND claim_no = %(claim_no)s),
       (SELECT count(*) FROM workflows_taskclass), (SELECT max(id) FROM workflows_taskclass)
