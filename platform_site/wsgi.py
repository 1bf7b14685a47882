"""The web process's entry point: ``gunicorn -c platform_site/gunicorn.conf.py platform_site.wsgi``."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "platform_site.settings")
os.environ.setdefault("WORKLOAD_PROCESS_KIND", "web")

from django.core.wsgi import get_wsgi_application

from observability import tracing

tracing.configure("workload-web")  # before the handler is built, so that its middleware is traced

application = get_wsgi_application()
