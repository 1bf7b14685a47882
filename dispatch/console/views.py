"""Pages of workers: parse, one call, present."""

from __future__ import annotations

from typing import Any

from dispatch import queries
from platform_site.console.views import ConsoleView


class WorkersView(ConsoleView):
    """Who works, who drains, and who left lately."""

    section = "workers"
    template_name = "console/dispatch/workers.html"
    fragment_name = "console/dispatch/_workers_live.html"

    def page_context(self) -> dict[str, Any]:
        return {"page": queries.list_workers(tenant_id=self.tenant_id)}
