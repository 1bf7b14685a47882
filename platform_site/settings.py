"""Every setting of the site, from the environment alone; wrong values refuse the start, all at once.

The platform's own knobs are ``settings.WORKLOAD`` (``platform_site.configuration.PlatformSettings``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from observability.logs import logging_config
from platform_site import configuration, database
from platform_site.embedded import layout
from platform_site.secret_key import stored_secret_key

BASE_DIR = Path(__file__).resolve().parent.parent

_env = configuration.environment()
_kind = _env.text("WORKLOAD_PROCESS_KIND", "command")
_data_dir = Path(_env.text("WORKLOAD_DATA_DIR", str(BASE_DIR / ".data"))).absolute()
_url_name = "DATABASE_URL"
_url = _env.text("DATABASE_URL")
_embedded = not _url
if _embedded:
    _url = layout.locate(_data_dir).url
elif _kind == "coordinator" and _env.text("COORDINATOR_DATABASE_URL"):
    # Leadership lives on one session, so the coordinator must reach the server itself, not a pooler.
    _url_name, _url = "COORDINATOR_DATABASE_URL", _env.text("COORDINATOR_DATABASE_URL")

WORKLOAD = configuration.PlatformSettings.read(
    _env, data_dir=_data_dir, embedded=_embedded, process_kind=_kind
)

DEBUG = _env.boolean("WORKLOAD_DEBUG", default=False)
SECRET_KEY = _env.secret(
    "WORKLOAD_SECRET_KEY",
    generate=(lambda: stored_secret_key(_data_dir)) if _embedded or DEBUG else None,
)
ALLOWED_HOSTS = _env.words("WORKLOAD_ALLOWED_HOSTS", ("localhost", "127.0.0.1", "[::1]"))
CSRF_TRUSTED_ORIGINS = _env.words("WORKLOAD_TRUSTED_ORIGINS")

try:
    DATABASES: dict[str, dict[str, Any]] = {
        "default": database.configure(_url, process_kind=_kind, web_threads=WORKLOAD.web_threads)
    }
except ImproperlyConfigured as _error:
    _env.problem(_url_name, str(_error).removesuffix("."))

# Behind a proxy that ends TLS: cookies only over https, the proxy's header believed, plain http sent away.
_https = _env.boolean("WORKLOAD_HTTPS", default=False)
SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _https
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _https else None
SECURE_HSTS_SECONDS = _env.integer(
    "WORKLOAD_HSTS_SECONDS", 31_536_000 if _https else 0, least=0, most=63_072_000
)
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = _https
SECURE_REDIRECT_EXEMPT = [r"^health/"]  # a probe inside the cluster speaks plain http
X_FRAME_OPTIONS = "DENY"

_env.finish()

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_prometheus",
    "django_htmx",
    "platform_site",
    "platform_site.access",
    "platform_site.console",
    "observability",
    "workflows",
    "dispatch",
    "agents",
    "workers",
]
MIDDLEWARE = [
    "platform_site.api.request_id.RequestIdMiddleware",
    "platform_site.health.HealthMiddleware",
    "observability.access_log.AccessLogMiddleware",
    "django_prometheus.middleware.PrometheusBeforeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "django_prometheus.middleware.PrometheusAfterMiddleware",
]
ROOT_URLCONF = "platform_site.urls"
WSGI_APPLICATION = "platform_site.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "platform_site.console.context.furniture",
                "platform_site.home.leading_coordinator",
            ]
        },
    }
]

USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
STATIC_URL = "/static/"
STATIC_ROOT = _env.text("WORKLOAD_STATIC_ROOT") or None  # only for who runs collectstatic; else not needed
STATICFILES_DIRS = [BASE_DIR / "static"] if (BASE_DIR / "static").is_dir() else []
WHITENOISE_USE_FINDERS = True  # no build step: files are served from where they lie, collectstatic or not
WHITENOISE_AUTOREFRESH = DEBUG
APPEND_SLASH = False
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "overview"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{validator}"}
    for validator in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
# The API's own parser bounds its bodies by address (definitions may be larger); this is the outer wall.
DATA_UPLOAD_MAX_MEMORY_SIZE = WORKLOAD.definition_limit_bytes

REST_FRAMEWORK = {
    "EXCEPTION_HANDLER": "platform_site.api.handler.exception_handler",
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "platform_site.access.authentication.TokenAuthentication",
        "platform_site.access.authentication.UserAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["platform_site.access.permissions.Closed"],
    "DEFAULT_PARSER_CLASSES": ["platform_site.api.parsers.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "platform_site.api.schema.ApiSchema",
    "DEFAULT_PAGINATION_CLASS": None,
    "UNICODE_JSON": True,
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "AI Workload Platform",
    "DESCRIPTION": "Define, run and watch multi-step workloads; the protocol that workers speak.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
}
PROMETHEUS_EXPORT_MIGRATIONS = False
# Callables without arguments, each giving a further duty of the leading coordinator: the site knows apps that
# `dispatch` does not.
COORDINATOR_DUTIES: list[str] = []

LOGGING = logging_config(WORKLOAD.log_format, WORKLOAD.log_level)
