-- The first event of a new run.
INSERT INTO workflows_stateevent (run_id, seq, at, entity, key, from_state, to_state, reason, actor)
SELECT run_id, seq, %(now)s, entity, key, from_state, to_state, reason, %(actor)s
FROM unnest(%(run_ids)s::uuid[], %(seqs)s::bigint[], %(entities)s::text[], %(keys)s::text[],
            %(from_states)s::text[], %(to_states)s::text[], %(reasons)s::text[])
     AS event(run_id, seq, entity, key, from_state, to_state, reason)
