"""The console without a mouse: everything that can be done can be reached, seen and pressed."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Site
from tests.browser.history import busy_platform
from workflows.models import Run

TAB, ENTER = "\ue004", "\ue007"

#: The element that has the focus, and whether a ring shows it.
FOCUS = """
const style = getComputedStyle(document.activeElement);
return [document.activeElement.id, style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2];
"""


@pytest.fixture
def run(site: Site) -> Run:  # the site first: its fixtures open the database for the server's thread
    del site
    return Run.objects.get(id=busy_platform())


def tab_to(site: Site, wanted: str, *, within: int = 40) -> None:
    for _ in range(within):
        site.press(TAB)
        focused, ringed = site.js(FOCUS)
        assert ringed, f"no ring around {site.js('return document.activeElement.outerHTML')}"
        if focused == wanted:
            return
    pytest.fail(f"{wanted} is not within {within} steps")


def test_a_run_is_canceled_with_the_keyboard_alone(site: Site, run: Run) -> None:
    site.open(f"/runs/{run.id}")
    tab_to(site, "cancel")
    site.press(ENTER)
    site.wait("location.pathname.endsWith('/cancel') && document.readyState === 'complete'")
    tab_to(site, "confirm")
    site.press(ENTER)
    site.wait("document.body.innerText.includes('Cancel asked for.')")
    run.refresh_from_db()
    assert run.cancel_requested_at is not None
    assert "canceling" in site.js("return document.querySelector('.head').innerText")


def test_the_first_step_skips_the_navigation(site: Site, run: Run) -> None:
    del run
    site.open("/")
    site.press(TAB)
    assert site.js("return document.activeElement.textContent") == "Skip to content"
    assert site.js("return document.activeElement.getBoundingClientRect().top") >= 0
    site.press(ENTER)
    assert site.js("return document.activeElement.id") == "content"


def test_a_row_is_opened_with_its_link(site: Site, run: Run) -> None:
    site.open("/runs")
    site.js(f"document.querySelector('[id=\"run-{run.id}\"] a.row').focus()")
    site.press(ENTER)
    site.wait(f"location.pathname === '/runs/{run.id}'")


def test_a_whole_row_is_a_target_for_the_pointer(site: Site, run: Run) -> None:
    site.open("/runs")
    cell = site.driver.find_element("css selector", f"[id='run-{run.id}'] td:nth-child(3)")
    site.click_at(cell)
    site.wait(f"location.pathname === '/runs/{run.id}'")
