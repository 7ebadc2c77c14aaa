"""The lineage site in a browser: layout in two widths and schemes, and the keyboard alone."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from binloom.site.lineage import Lineage
from binloom.site.page import index_page
from tests.support.browser import ENTER, browser, complaints, wait
from tests.support.lineages import FACTS, HOSTILE, LINEAGE, LONG_WAY, NOON, table

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TAB, ESCAPE = "\ue004", "\ue00c"
MOST_TABS = 60
FRAME_OF_DRAWING = "const frame = document.querySelector('.shown .drawing'); const svg = frame.querySelector('svg');"
MIDDLE = """
const [a, b] = [frame.getBoundingClientRect(), svg.querySelector('.chosen rect').getBoundingClientRect()];
return Math.hypot(a.left + a.right - b.left - b.right, a.top + a.bottom - b.top - b.bottom) / 2;
"""
TABLES_MOVED_SIDEWAYS = """
return [...document.querySelectorAll(".shown .wide")]
  .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.getAttribute("aria-label"));
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Chrome"]:
    with browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def open_site(driver: "Chrome", folder: Path, lineage: Lineage, page: str = "start") -> None:
    site = folder / "index.html"
    site.write_text(index_page(lineage, FACTS, NOON))
    driver.get(f"{site.as_uri()}#{page}")


def resize(driver: "Chrome", width: int, scheme: str = "light") -> None:
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("page", ["table", "column"])
def test_a_drawing_fits_and_can_be_made_larger_by_the_keyboard(
    driver: "Chrome", tmp_path: Path, page: str, width: int
) -> None:
    resize(driver, width)
    middle = "model_with_a_rather_long_name_9"
    open_site(driver, tmp_path, LONG_WAY, f"table/{middle}" if page == "table" else f"column/{middle}/id")

    def overflow() -> list[int]:
        sizes = "frame.scrollWidth - frame.clientWidth, frame.scrollHeight - frame.clientHeight"
        return list(driver.execute_script(f"{FRAME_OF_DRAWING} return [{sizes}]"))

    assert driver.execute_script(f"{FRAME_OF_DRAWING} return svg.querySelectorAll('.frame').length") == 21
    assert overflow() == [0, 0]
    press(driver, "Larger")
    assert overflow()[0] > 0
    # What was chosen stays in sight.
    assert driver.execute_script(FRAME_OF_DRAWING + MIDDLE) < 20
    press(driver, "Whole")
    assert overflow() == [0, 0]
    assert complaints(driver) == []


def press(driver: "Chrome", label: str) -> None:
    """Go to a button or link by the keyboard alone, and press it."""
    for _ in range(MOST_TABS):
        driver.switch_to.active_element.send_keys(TAB)
        if driver.switch_to.active_element.text == label:
            driver.switch_to.active_element.send_keys(ENTER)
            return
    raise AssertionError(f"no {label} within {MOST_TABS} keys")


def test_a_search_finds_names_first_and_then_descriptions(driver: "Chrome", tmp_path: Path) -> None:
    resize(driver, 1280)
    described = replace(table("quiet", "marts"), description="Rows that VALUE has.\n\nWhich fox jumps?")
    scattered = replace(table("loud", "marts"), description="Jumps of a fox.")
    open_site(driver, tmp_path, Lineage((*LINEAGE.tables, scattered, described), LINEAGE.edges))
    driver.find_element("css selector", "body").send_keys("/", "value")
    assert driver.switch_to.active_element.get_attribute("id") == "search"

    def options() -> "list[WebElement]":
        return driver.find_elements("css selector", "#found [role=option]")

    found = [one.text for one in options()]
    assert (
        found[0].startswith("value\n")
        and found[-1] == "quiet\nChanges and files: Rows that VALUE has. Which fox jumps?"
    )
    driver.switch_to.active_element.send_keys(" fox", ENTER)
    wait(driver, lambda: driver.title.startswith("quiet"))
    # The words as they were typed come first, although the name is longer.
    driver.find_element("css selector", "body").send_keys("/", "fox jumps")
    assert [one.text.partition("\n")[0] for one in options()] == ["quiet", "loud"]
    driver.switch_to.active_element.send_keys(ESCAPE)
    driver.find_element("css selector", "body").send_keys("/", "jumps high")
    assert driver.find_element("id", "found").text == "No name and no description has these words."
    assert complaints(driver) == []


def show(driver: "Chrome", page: str) -> None:
    driver.execute_script("location.hash = arguments[0]", page)
    wait(driver, lambda: bool(driver.execute_script("return document.querySelector('.shown').id") == page))


@pytest.mark.parametrize("lineage", [LINEAGE, HOSTILE, LONG_WAY], ids=["usual", "hostile", "long"])
def test_no_page_is_broader_than_the_window(driver: "Chrome", tmp_path: Path, lineage: Lineage) -> None:
    open_site(driver, tmp_path, lineage)
    pages = driver.execute_script("return [...document.querySelectorAll('section.page')].map((one) => one.id)")
    driver.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    for width in (1280, 400):
        for scheme in ("light", "dark"):
            resize(driver, width, scheme)
            for page in pages:
                show(driver, page)
                assert driver.execute_script("return document.documentElement.scrollWidth") <= width, (page, width)
                # No table is moved sideways, which would leave rows as high as their hidden cells.
                assert driver.execute_script(TABLES_MOVED_SIDEWAYS) == [], (page, width)
    assert complaints(driver) == []
