"""Executors: what a lease of a given kind does. `base` is the interface, each other module one kind."""
