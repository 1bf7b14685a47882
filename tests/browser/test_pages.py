"""Every page, in both themes and on a phone: no errors, all text can be read, nothing scrolls sideways."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tests.browser.conftest import Site
from tests.browser.history import busy_platform

PAGES = {
    "overview": "/",
    "runs": "/runs",
    "no runs": "/runs?state=canceled&workflow=nobody",
    "run": "/runs/{run}",
    "run, narrowed": "/runs/{run}?state=succeeded",
    "events": "/runs/{run}?tab=events",
    "attempts": "/runs/{run}?tab=attempts",
    "params": "/runs/{run}?tab=params",
    "cancel": "/runs/{run}/cancel",
    "running task": "/runs/{run}/tasks/clean-c",
    "failed task": "/runs/{run}/tasks/bad-file",
    "finished task": "/runs/{run}/tasks/list",
    "workflows": "/workflows",
    "workflow": "/workflows/index-handbook",
    "version": "/workflows/index-handbook/versions/7",
    "workers": "/workers",
}

#: Texts whose contrast with what lies behind them is under 4.5 : 1, with the colours.
LOW_CONTRAST = """
const parse = (text) => {
  const [r, g, b, alpha] = text.match(/[\\d.]+/g).map(Number);
  return [r, g, b, alpha ?? 1];
};
const over = (top, below) =>
  [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const light = ([r, g, b]) =>
  0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
const behind = (element) => {
  const layers = [];
  for (let at = element; at; at = at.parentElement) {
    layers.unshift(parse(getComputedStyle(at).backgroundColor));
  }
  return layers.reduce((below, top) => over(top, below), [255, 255, 255, 1]);
};
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.textContent.trim();
  const element = walker.currentNode.parentElement;
  if (!text || !element.checkVisibility({ visibilityProperty: true })) continue;
  const ground = behind(element);
  const ink = over(parse(getComputedStyle(element).color), ground);
  const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) found.push(`${text}: ${ratio.toFixed(2)}, ${ink} on ${ground}`);
}
return found;
"""

#: What a keyboard or a screen reader cannot tell apart: controls without a name, ids used twice.
NAMELESS = """
const named = (element) =>
  [element.getAttribute("aria-label"), element.textContent, element.labels?.[0]?.textContent].join("").trim();
const controls = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select")];
const nameless = controls.filter((element) => !named(element)).map((element) => element.outerHTML);
const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
return nameless.concat(ids.filter((id, at) => ids.indexOf(id) !== at));
"""


def problems(site: Site) -> list[str]:
    """What is wrong with the page that is open; leaves it as narrow as a phone."""
    found: list[str] = site.js(NAMELESS)
    if site.js("return document.querySelectorAll('h1').length") != 1:
        found.append("not one heading of the page")
    for theme in ("light", "dark"):
        site.js("document.documentElement.dataset.theme = arguments[0]", theme)
        found += [f"{theme}: {text}" for text in site.js(LOW_CONTRAST)]
    site.resize(360, 740)
    width = site.js("return document.documentElement.scrollWidth")
    if width != 360:
        found.append(f"{width} wide on a phone of 360")
    return found + site.console_errors()


@pytest.fixture
def run(site: Site) -> UUID:  # the site first: its fixtures open the database for the server's thread
    return busy_platform()


def test_every_page_can_be_read(site: Site, run: UUID) -> None:
    found = {}
    for name, path in PAGES.items():
        site.open(path.format(run=run))
        if wrong := problems(site):
            found[name] = wrong
    assert found == {}


def test_the_sign_in_page_can_be_read_too(visitor: Site) -> None:
    visitor.open("/login?next=/runs")
    assert problems(visitor) == []


def test_an_unknown_address_is_a_page_that_can_be_read(visitor: Site) -> None:
    visitor.open("/nowhere", width=360, height=740)
    assert visitor.js(LOW_CONTRAST) == []
    assert visitor.js("return document.documentElement.scrollWidth") == 360
    assert "Nothing here" in visitor.js("return document.body.innerText")


def test_the_theme_follows_the_device_until_one_is_chosen(site: Site, run: UUID) -> None:
    del run

    def device(scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        site.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def ground() -> Any:
        return site.js("return getComputedStyle(document.body).backgroundColor")

    site.driver.delete_cookie("theme")
    try:
        device("dark")
        site.open("/")
        assert ground() == "rgb(14, 17, 22)"
        device("light")
        assert ground() == "rgb(246, 247, 249)"
        for chosen in ("light", "dark"):
            site.js("document.querySelector('button[name=theme]').click()")
            site.wait("document.documentElement.dataset.theme === arguments[0]", chosen)
        assert ground() == "rgb(14, 17, 22)"
        site.open("/runs")
        assert site.js("return document.documentElement.dataset.theme") == "dark"
    finally:
        device("")


def test_its_own_letters_are_used(site: Site, run: UUID) -> None:
    site.open(f"/runs/{run}")
    site.wait("document.fonts.status === 'loaded'")
    loaded = site.js("return [...document.fonts].filter((f) => f.status === 'loaded').map((f) => f.family)")
    assert {name.strip('"') for name in loaded} == {"Inter", "JetBrains Mono"}
