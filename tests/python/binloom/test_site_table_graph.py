"""The drawing of a table: its boxes, its lines, and their places."""

import re
from xml.etree import ElementTree

import pytest

from binloom.site.lineage import Lineage
from binloom.site.table_graph import TableGraph
from tests.support.lineages import HOSTILE, HOSTILE_TABLE, LINEAGE, RAW, table

Place = tuple[float, float, float, float]

DIAMOND = Lineage(
    (
        RAW,
        table("left", "staging", (RAW.name,)),
        table("right", "intermediate", ("left", RAW.name)),
        table("bottom", "marts", ("left", "right")),
        table("beside", "marts", (RAW.name, "bottom")),
        table("elsewhere", "marts", (RAW.name,)),
    ),
    (),
)


def drawn(lineage: Lineage, name: str) -> tuple[dict[str, Place], set[tuple[str, str]]]:
    """Return the boxes of a drawing by title, as left, right, top and bottom, and the lines between them."""
    svg = ElementTree.fromstring(TableGraph(lineage).drawing(name))
    boxes: dict[str, Place] = {}
    for box in svg.iter("a"):
        x, y, width, height = (float(box.find("rect").attrib[one]) for one in ("x", "y", "width", "height"))  # type: ignore[union-attr]
        boxes[box.findtext("title") or ""] = (x, x + width, y, y + height)
    ends = [[float(number) for number in re.findall(r"[\d.]+", path.attrib["d"])] for path in svg.iter("path")]
    lines = {(_at(boxes, 1, line[0], line[1]), _at(boxes, 0, line[-2], line[-1])) for line in ends}
    _, _, width, height = map(float, svg.attrib["viewBox"].split())
    assert all(
        0 <= left < right <= width and 0 <= top < bottom <= height for left, right, top, bottom in boxes.values()
    )
    return boxes, lines


def _at(boxes: dict[str, Place], side: int, x: float, y: float) -> str:
    """Return the box that has a line at its left or right side."""
    (name,) = [name for name, box in boxes.items() if abs(box[side] - x) <= 1 and box[2] < y < box[3]]
    return name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "bottom",
            {
                (RAW.name, "left"),
                (RAW.name, "right"),
                ("left", "right"),
                ("left", "bottom"),
                ("right", "bottom"),
                ("bottom", "beside"),
            },
        ),
        ("elsewhere", {(RAW.name, "elsewhere")}),
    ],
)
def test_the_lines_are_the_ways_through_the_table(name: str, expected: set[tuple[str, str]]) -> None:
    boxes, lines = drawn(DIAMOND, name)
    # The line from the raw table past `bottom` to `beside` tells of another way.
    assert lines == expected
    assert {*boxes} == {one for line in lines for one in line}
    # No line goes back, and no box hides another.
    assert all(boxes[one][1] < boxes[other][0] for one, other in lines)
    places = [*boxes.values()]
    for at, (left, right, top, bottom) in enumerate(places):
        for other in places[:at]:
            assert right < other[0] or other[1] < left or bottom < other[2] or other[3] < top


def test_a_hostile_name_is_text() -> None:
    svg = ElementTree.fromstring(TableGraph(HOSTILE).drawing(HOSTILE_TABLE))
    assert {one.tag for one in svg.iter()} == {"svg", "path", "a", "title", "rect", "text"}
    assert HOSTILE_TABLE in [title.text for title in svg.iter("title")]


def test_a_table_without_neighbours_has_no_drawing() -> None:
    assert TableGraph(LINEAGE).drawing("event_types") == ""
