"""The site that wires the apps together: settings, addresses, the one-machine database and launcher.

It may import every app; no app below it imports this package, except its furniture: ``platform_site.access``,
``.api`` and ``.console``, which in turn import no domain app.
"""
