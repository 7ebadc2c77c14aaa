"""The pages of `binloom ui` in a browser: two widths, two schemes, and the keyboard alone."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from binloom.answers.opening import Inputs
from tests.support.browser import ENTER, browser, complaints, wait
from tests.support.nasty import nasty_file
from tests.support.pages import DAMAGE, addresses, sample_inputs, served

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

TAB = "\ue004"
MOST_TABS = 120


def enter(driver: "Chrome", address: str, entrance: str) -> None:
    """Open the address with the token, which leads on to the first page."""
    driver.get(entrance)
    wait(driver, lambda: driver.current_url == f"{address}/" and "Timeline" in driver.title)


def assert_fits(driver: "Chrome", pages: list[str]) -> None:
    """Assert that no page is wider than the window or has a script, in two widths and schemes."""
    for page in pages:
        driver.get(page)
        assert driver.execute_script("return document.scripts.length") == 0
        for scheme in ("light", "dark"):
            media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            for width in (1280, 400):
                size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
                driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
                assert driver.execute_script("return document.documentElement.scrollWidth") <= width, (page, width)
                colors = driver.execute_script(
                    "const s = getComputedStyle(document.body); return [s.color, s.background]"
                )
                assert colors[0] != colors[1] and ("255, 255, 255" in colors[1]) == (scheme == "light"), colors


def follow(driver: "Chrome", text: str) -> None:
    """Go to a link by the keyboard alone, and follow it."""
    before = driver.current_url
    for _ in range(MOST_TABS):
        driver.switch_to.active_element.send_keys(TAB)
        label = driver.execute_script(
            "const e = document.activeElement; return e.getAttribute('aria-label') ?? e.textContent.trim()"
        )
        if label.startswith(text):
            driver.switch_to.active_element.send_keys(ENTER)
            wait(driver, lambda: driver.current_url != before)
            return
    raise AssertionError(f"no link {text} within {MOST_TABS} keys on {before}")


@pytest.mark.browser
@pytest.mark.slow
def test_a_browser_shows_each_page_without_a_complaint(tmp_path: Path) -> None:
    with browser(tmp_path / "profile") as driver:
        with served(sample_inputs()) as (address, entrance):
            enter(driver, address, entrance)
            assert_fits(driver, [f"{address}{one}" for one in addresses()])
            # The keyboard alone: a bar, its transactions, the transaction, a row's history, its earlier version.
            driver.get(f"{address}/?since=2026-11-17+10:15&until=2026-11-17+10:20")
            follow(driver, "Transactions with these changes")
            follow(driver, DAMAGE)
            follow(driver, "History of 1001")
            follow(driver, "Previous")
            assert "version=" in driver.current_url and "Row" in driver.title
            driver.get(f"{address}/?table=shop.orders")
            follow(driver, "2026-11-17 10:15:00 UTC: shop.orders")
            assert "since=2026-11-17+10%3A15%3A00" in driver.current_url
        nasty_file(tmp_path / "b.000001", 1)
        with served(Inputs([tmp_path / "b.000001"])) as (address, entrance):
            enter(driver, address, entrance)
            pages = [f"{address}{one}" for one in ("/", "/transactions", "/table", "/undo?schema=*")]
            for page, link in ((1, "/transaction?"), (2, "/table?")):
                driver.get(pages[page])
                found = driver.execute_script("return [...document.querySelectorAll('main a')].map(a => a.href)")
                pages.append(next(one for one in found if link in one))
            assert_fits(driver, pages)
        nasty_file(tmp_path / "long.000001", 1, "n" * 300)
        with served(Inputs([tmp_path / "long.000001"])) as (address, entrance):
            enter(driver, address, entrance)
            driver.get(f"{address}/transactions")
            follow(driver, "long.000001")
            # A long word leaves the value after the change in sight of a narrow window, which the last page has set.
            assert driver.execute_script("return document.querySelector('table.diff').offsetWidth") <= 400
        assert complaints(driver) == []
