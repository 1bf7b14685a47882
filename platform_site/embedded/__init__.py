"""PostgreSQL for one machine, without an installed server: what ``DATABASE_URL`` replaces in production.

``layout`` says where everything lies (it changes nothing, so that settings can use it), ``binaries`` finds
the programs, ``locks`` lets any number of processes share one server, ``server`` starts and stops it.
The folder holds::

    postgres/
        postgres.lock    held while someone starts or stops the server
        users.lock       held shared by everyone who needs the server; whoever is alone on it stops the server
        data/            the cluster; nothing here ever deletes it
        sockets/         mode 0700: the only way in, which is why the server may trust who comes through
        postgres.log
        programs/        a copy of the binaries, only where the server's user cannot enter the environment
"""
