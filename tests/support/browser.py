"""A real browser without a screen: Debian's Chromium, driven by Selenium."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

# Selenium's `Keys.ENTER`.
ENTER = "\ue007"
PROGRAMS = ("chromium", "chromedriver")
# Root may run Chromium without its sandbox only; the page is our own. A test must not look for a network.
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Tests change the address of a page faster than a person.
    "--disable-ipc-flooding-protection",
    "--no-first-run",
    "--window-size=1280,900",
]


def missing_programs() -> list[str]:
    """Return the programs of the browser that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def why_no_browser() -> str:
    """Return a sentence for a test that cannot run."""
    return f"{' and '.join(missing_programs())} not found (Debian: apt-get install chromium chromium-driver)"


@contextmanager
def browser(profile: Path) -> Iterator["Chrome"]:
    """Start a browser with an empty profile in a folder; end it at exit."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    programs = {name: shutil.which(name) for name in PROGRAMS}
    options = ChromeOptions()
    options.binary_location = programs["chromium"] or ""
    for option in [*OPTIONS, f"--user-data-dir={profile}"]:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=Service(executable_path=programs["chromedriver"]))
    driver.set_script_timeout(PATIENCE_SECONDS)
    try:
        yield driver
    finally:
        driver.quit()


def wait(driver: "Chrome", condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, PATIENCE_SECONDS).until(lambda _: condition())


def complaints(driver: "Chrome") -> list[dict[str, Any]]:
    """Return the messages of the console since the last call."""
    return list(driver.get_log("browser"))
