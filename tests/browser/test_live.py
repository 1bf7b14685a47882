"""Live parts: they refresh in place, mark what changed, stop at the end, and say when they are stale."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from tests.browser.conftest import Site
from tests.browser.history import History, TaskFacts, busy_platform, change
from workflows.kernel.states import RunState, TaskState
from workflows.models import Run, Task


@pytest.fixture
def run(site: Site) -> Run:  # the site first: its fixtures open the database for the server's thread
    del site
    return Run.objects.get(id=busy_platform())


def state_of(key: str) -> str:
    return f"[...document.querySelectorAll('#tasks tr')].find((r) => r.innerText.startsWith('{key}'))"


def test_a_run_refreshes_in_place(site: Site, run: Run) -> None:
    """The row changes and is marked; page, focus and place on the page stay as they were."""
    site.open(f"/runs/{run.id}")
    site.js("window.here = 'the same page'; scrollTo(0, 600)")
    task = Task.objects.get(run=run, key="clean-e")
    site.js(f"{state_of('clean-e')}.querySelector('a').focus({{preventScroll: true}})")
    change(task, state="running", progress_text="page 1 of 9")
    site.wait(f"{state_of('clean-e')}.innerText.includes('page 1 of 9')")
    assert site.js(f"return {state_of('clean-e')}.classList.contains('changed')")
    assert site.js(f"return {state_of('clean-f')}.classList.contains('changed')") is False
    assert site.js("return document.activeElement.textContent") == "clean-e"
    assert site.js("return [window.here, scrollY]") == ["the same page", 600]
    assert site.console_errors() == []


def test_a_narrowed_list_of_tasks_stays_until_asked(site: Site, run: Run) -> None:
    site.open(f"/runs/{run.id}?state=queued")
    change(Task.objects.get(run=run, key="clean-e"), state="running", progress_text="moved on")
    change(run, tasks_queued=0, tasks_running=2)
    site.wait("document.querySelector('.tallies [data-state=running]').textContent.trim()[0] === '2'")
    assert "clean-e" in site.js("return document.getElementById('tasks').innerText")


def test_a_finished_run_is_asked_for_no_more(site: Site, run: Run) -> None:
    site.open(f"/runs/{run.id}")
    site.wait("document.querySelector('#live[hx-trigger]') !== null")
    nothing = {f"tasks_{state.value}": 0 for state in TaskState}
    counters = {**nothing, "tasks_canceled": run.tasks_total}
    change(run, state="canceled", finished_at=datetime.now(UTC), **counters)
    site.wait("document.querySelector('#live[hx-trigger]') === null")
    assert "canceled" in site.js("return document.querySelector('.head').innerText")
    asked = "performance.getEntriesByType('resource').filter((e) => e.initiatorType === 'fetch').length"
    before = site.js(f"return {asked}")
    time.sleep(2.5)  # that nothing happens takes its time to see: one interval and a half
    assert site.js(f"return {asked}") == before


def test_the_overview_refreshes(site: Site, run: Run) -> None:
    site.open("/")
    change(run, tasks_succeeded=run.tasks_succeeded + 1, tasks_running=0)
    site.wait("document.getElementById('recent').innerText.includes('28 of 38')")
    assert site.console_errors() == []


def test_rows_do_not_move_under_the_pointer(site: Site, run: Run) -> None:
    site.open("/")
    first = "document.querySelector('#recent tbody tr').id"
    before = site.js(f"return {first}")
    site.point_at(site.driver.find_element("css selector", "#recent tbody tr:nth-child(2)"))
    history = History()
    tasks = [TaskFacts("only", TaskState.READY)]
    history.run(run.version, RunState.RUNNING, tasks, age=timedelta(0))
    site.wait("!document.getElementById('held').hidden")
    assert site.js(f"return {first}") == before
    site.point_at(site.driver.find_element("css selector", "h1"))
    site.wait(f"{first} !== arguments[0]", before)
    assert site.js("return document.getElementById('held').hidden")


def test_a_page_that_cannot_refresh_says_since_when(site: Site, run: Run) -> None:
    site.open(f"/runs/{run.id}")
    assert site.js("return document.getElementById('stale').hidden")
    site.network(offline=True)
    try:
        site.wait("!document.getElementById('stale').hidden")
        assert site.js("return /\\d\\d:\\d\\d:\\d\\d/.test(document.getElementById('stale-since').innerText)")
    finally:
        site.network(offline=False)
    site.wait("document.getElementById('stale').hidden")


def test_a_session_that_ended_leads_to_sign_in(site: Site, run: Run) -> None:
    site.open(f"/runs/{run.id}")
    site.driver.delete_cookie("sessionid")
    site.wait(f"location.pathname + location.search === '/login?next=/runs/{run.id}'")


def test_times_are_told_in_the_viewers_zone(site: Site, run: Run) -> None:
    site.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
    try:
        site.open(f"/runs/{run.id}")
        told = "document.querySelector('#progress time')"
        shown, exact = site.js(f"return [{told}.textContent, {told}.title]")
        at = datetime.strptime(exact, "%Y-%m-%d %H:%M:%S UTC").replace(tzinfo=UTC)
        assert f"{(at.hour + 9) % 24:02d}:{at:%M:%S}" in shown
        # A refresh keeps the viewer's zone.
        change(run, priority=7)
        site.wait("document.getElementById('progress').innerText.includes('priority 7')")
        assert site.js(f"return {told}.textContent") == shown
    finally:
        site.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def test_an_id_is_copied_whole(site: Site, run: Run) -> None:
    permissions = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    site.driver.execute_cdp_cmd("Browser.grantPermissions", permissions)
    site.open(f"/runs/{run.id}")
    site.driver.find_element("css selector", "h1 .id").click()
    site.wait("document.querySelector('h1 .id').classList.contains('copied')")
    copied = site.driver.execute_async_script(
        "navigator.clipboard.readText().then(arguments[arguments.length - 1])"
    )
    assert UUID(copied) == UUID(str(run.id))
