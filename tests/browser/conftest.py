"""One headless browser for the session; each test gets it signed in, at a known size, in the light theme."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or ""
DRIVER = shutil.which("chromedriver") or ""
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.browser)
            if not (BROWSER and DRIVER):
                item.add_marker(pytest.mark.skip(reason="needs chromium and chromedriver"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A driver of a browser with an empty profile. Its own log of the page's console is on."""
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    profile = tempfile.mkdtemp(prefix="workload-browser-")
    for option in (*OPTIONS, f"--user-data-dir={profile}"):
        options.add_argument(option)
    options.binary_location = BROWSER
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(20)
    try:
        yield driver
    finally:
        driver.quit()
        shutil.rmtree(profile, ignore_errors=True)


class Site:
    """What a test does in the browser: open, look, press."""

    def __init__(self, driver: Any, address: str) -> None:
        self.driver = driver
        self.address = address

    def open(self, path: str, *, width: int = 1360, height: int = 900) -> None:
        self.resize(width, height)
        self.driver.get(self.address + path)

    def resize(self, width: int, height: int) -> None:
        facts = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", facts)

    def js(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def wait(self, script: str, *arguments: object, seconds: float = 12) -> Any:
        """The first true value of an expression; a test fails with the expression when it stays false."""
        from selenium.webdriver.support.ui import WebDriverWait  # only where a browser test runs

        waiting = WebDriverWait(self.driver, seconds, poll_frequency=0.05)
        return waiting.until(lambda _: self.js(f"return {script}", *arguments), f"never true: {script}")

    def press(self, *keys: str) -> None:
        """Keys go to whatever has the focus, as a person's would."""
        from selenium.webdriver.common.action_chains import ActionChains  # as above

        ActionChains(self.driver).send_keys(*keys).perform()

    def point_at(self, element: Any) -> None:
        from selenium.webdriver.common.action_chains import ActionChains  # as above

        ActionChains(self.driver).move_to_element(element).perform()

    def click_at(self, element: Any) -> None:
        """The pointer goes there and presses, whatever lies on top."""
        from selenium.webdriver.common.action_chains import ActionChains  # as above

        ActionChains(self.driver).move_to_element(element).click().perform()

    def console_errors(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    def network(self, *, offline: bool) -> None:
        self.driver.execute_cdp_cmd("Network.enable", {})
        facts = {"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self.driver.execute_cdp_cmd("Network.emulateNetworkConditions", facts)


@pytest.fixture
def visitor(browser: Any, live_server: Any) -> Iterator[Site]:
    """The site for somebody who has not signed in."""
    site = Site(browser, live_server.url)
    browser.get_log("browser")
    yield site
    browser.get("about:blank")  # no live part may ask while the tables are emptied
    browser.execute_cdp_cmd("Network.clearBrowserCookies", {})


@pytest.fixture
def site(visitor: Site) -> Site:
    """The site for an operator."""
    client = Client()
    client.force_login(User.objects.create_superuser("operator-1"))
    visitor.open("/login")
    for name, value in (
        (settings.SESSION_COOKIE_NAME, client.cookies[settings.SESSION_COOKIE_NAME].value),
        ("theme", "light"),
    ):
        visitor.driver.add_cookie({"name": name, "value": value, "path": "/"})
    return visitor
