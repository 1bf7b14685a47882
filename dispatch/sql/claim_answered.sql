-- Was a call with this number answered before?
SELECT EXISTS (SELECT 1 FROM dispatch_dispatch WHERE worker_id = %(worker_id)s AND claim_no = %(claim_no)s)
