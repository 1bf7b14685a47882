"""Does everything stored still agree? Each counter and invariant, recomputed from rows.

A check is a statement in ``sql`` (or, for the dependencies, a comparison with the graph) that finds what is wrong;
``checks`` lists them all. ``examination`` runs them over a live system in bounded batches of runs, each batch under one
snapshot, so that work going on meanwhile never looks like a fault.
"""
