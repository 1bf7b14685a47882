"""The whole platform on one machine: database, web, coordinator and workers under one parent.

``ports`` finds the address, ``first_start`` makes what a new install lacks (tables, a first administrator, a
token for the local workers), ``children`` runs and restarts the processes, ``leash`` makes them die with us,
``platform`` puts these together for ``manage.py up`` and ``manage.py demo``.
"""
