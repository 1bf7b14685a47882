"""The base of every page, signing in, and the theme. Error pages are templates: `templates/<status>.html`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import urlencode

from django.contrib.auth.mixins import AccessMixin
from django.contrib.auth.views import LoginView
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.functional import cached_property
from django.utils.http import url_has_allowed_host_and_scheme
from django.views import View
from django.views.generic import TemplateView

from platform_site.access.authentication import principal_of_user
from platform_site.access.principal import Principal
from platform_site.access.roles import Role

THEMES = ("system", "light", "dark")
THEME_COOKIE = "theme"
_YEAR = 365 * 24 * 3600


def theme_of(request: HttpRequest) -> str:
    """The theme a person chose in this browser; `system` follows the device."""
    chosen = request.COOKIES.get(THEME_COOKIE, "")
    return chosen if chosen in THEMES else "system"


def is_fragment_request(request: HttpRequest) -> bool:
    """Whether a live part of a page asks for itself, rather than a person for the page."""
    return request.headers.get("HX-Request") == "true"


class SignedInMixin(AccessMixin):
    """Only people who may act for a tenant come in; the others get the sign-in page, or 403 when signed in.

    A live part whose session ended reloads its page, which then asks for sign-in.
    """

    request: HttpRequest
    needed_role: ClassVar[Role] = Role.VIEWER

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            if is_fragment_request(request):
                return HttpResponse(status=204, headers={"HX-Refresh": "true"})
            return self.handle_no_permission()
        if not self.principal.reaches(self.needed_role):
            raise PermissionDenied
        if "\0" in request.path or any("\0" in value for value in request.GET.values()):
            raise BadRequest("The address holds a character that no name can have.")
        response: HttpResponseBase = super().dispatch(request, *args, **kwargs)  # type: ignore[misc]  # the view behind
        return response

    @cached_property
    def principal(self) -> Principal:
        """Who acts, for which tenant. Raises PermissionDenied for a person who may act for none."""
        found = principal_of_user(self.request.user)
        if found is None:
            raise PermissionDenied
        return found

    @property
    def tenant_id(self) -> int:
        return self.principal.tenant_id

    @property
    def actor(self) -> str:
        """How the history names the person who acts."""
        return str(self.principal)


class ConsoleView(SignedInMixin, TemplateView):
    """A page: a subclass reads through one query call and gives `page_context()` plain data.

    A request of a live part gets `fragment_name`, the partial that the page itself included, so that the two
    cannot drift apart.
    """

    section: ClassVar[str] = ""
    fragment_name: ClassVar[str] = ""

    @cached_property
    def now(self) -> datetime:
        """The time the page tells ages and durations by, read once."""
        return timezone.now()

    def page_context(self) -> dict[str, Any]:
        """What the template shows; subclasses say. Raises Http404."""
        raise NotImplementedError

    def get_template_names(self) -> list[str]:
        if self.fragment_name and is_fragment_request(self.request):
            return [self.fragment_name]
        return super().get_template_names()

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        facts = {
            **kwargs,
            "section": self.section,
            "now": self.now,
            "principal": self.principal,
            "can_operate": self.principal.reaches(Role.OPERATOR),
            "address": self.request.get_full_path(),
        }
        return super().get_context_data(**{**facts, **self.page_context()})

    def render_to_response(self, context: dict[str, Any], **response_kwargs: Any) -> HttpResponse:
        response = super().render_to_response(context, **response_kwargs)
        patch_vary_headers(response, ("HX-Request", "Cookie"))
        response.headers["Cache-Control"] = "no-store"
        return response


def with_query(request: HttpRequest, **changes: str | None) -> str:
    """The query string of `request` with some parameters set, or removed by None; empty or with its `?`."""
    parameters = {**request.GET.dict(), **changes}
    text = urlencode({name: value for name, value in parameters.items() if value})
    return f"?{text}" if text else ""


class SignInView(LoginView):
    """The sign-in page."""

    template_name = "console/login.html"
    redirect_authenticated_user = True
    next_page = "overview"


class ThemeView(View):
    """Remembers the theme in a cookie, so that the page comes in it from the first byte."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest) -> HttpResponse:
        target = request.POST.get("next", "")
        if not url_has_allowed_host_and_scheme(target, allowed_hosts={request.get_host()}):
            target = "/"
        response = HttpResponseRedirect(target)
        chosen = request.POST.get("theme", "")
        if chosen in THEMES:
            response.set_cookie(
                THEME_COOKIE, chosen, max_age=_YEAR, samesite="Lax", secure=request.is_secure(), httponly=True
            )
        return response
