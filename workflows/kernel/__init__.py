"""The pure kernel: the workflow format, the graph, the state tables and every decision taken from them.

Nothing here reads a clock (`SystemClock` aside), a setting, a file, the network or a database. Time and
randomness are arguments, so that each decision can be repeated in a test and explained afterwards.

    canonical    strict JSON in, canonical JSON out, the digest
    format       the workflow format: fields, defaults, limits
    definition   a document in, a compiled workflow or every problem at once out
    graph        keys to positions, successors, in-degrees, cycles
    states       states, what each one means, which moves are legal
    progress     what an outcome unlocks, skips or settles; reconciliation
    retry        whether and when a failed attempt is tried again
    references   inputs that take values from run parameters and from outputs
    params       the JSON Schema of run parameters
    clock        the interface through which callers hand in the time
"""
