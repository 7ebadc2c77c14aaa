"""The drawing of a table: the tables that it is made of, back to the raw tables, and those that are made of it."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from binloom.site.lineage import Lineage
from binloom.site.markup import anchor, text
from ingest.escapes import visible

_HEIGHT: Final = 38
_LINE: Final = 14
_PADDING: Final = 8
_GAP_X: Final = 34
_GAP_Y: Final = 8
_MARGIN: Final = 12
_CHARACTER: Final = 7.3
_SHORT: Final = 14
_MOST_CHARACTERS: Final = 24

_Neighbours = Callable[[str], Iterable[str]]


@dataclass(frozen=True)
class _Box:
    """A table of the drawing, with the place of its upper left corner."""

    name: str
    x: float
    y: float
    width: float

    @property
    def middle(self) -> float:
        """The height at which its lines begin and end."""
        return self.y + _HEIGHT / 2


class TableGraph:
    """The drawings of the tables of a project."""

    def __init__(self, lineage: Lineage) -> None:
        known = {table.name for table in lineage.tables}
        self.parents = {table.name: [name for name in table.parents if name in known] for table in lineage.tables}
        self.children: dict[str, list[str]] = {name: [] for name in self.parents}
        for name, parents in self.parents.items():
            for parent in parents:
                self.children[parent].append(name)

    def made_of(self, name: str) -> list[str]:
        """Return the tables that are made of a table, the nearest first."""
        steps = _distances(name, self.children.__getitem__)
        return sorted(steps, key=lambda one: (steps[one], one))

    def drawing(self, name: str) -> str:
        """Return the drawing of a table as SVG; nothing for a table without neighbours."""
        above = _distances(name, self.parents.__getitem__)
        layers = {
            name: 0,
            **{one: -steps for one, steps in above.items()},
            **_distances(name, self.children.__getitem__),
        }
        if len(layers) == 1:
            return ""
        lines = [(parent, one) for one in layers for parent in self.parents[one] if _is_on_way(layers, parent, one)]
        boxes = _placed(layers, lines)
        width = max(box.x + box.width for box in boxes.values()) + _MARGIN
        height = max(box.y for box in boxes.values()) + _HEIGHT + _MARGIN
        parts = [*(_line(boxes[one], boxes[other]) for one, other in lines), *_drawn(boxes.values(), name)]
        return (
            f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="group"'
            f' aria-label="The way of the data through {text(name)}">{"".join(parts)}</svg>'
        )


def _distances(start: str, neighbours: _Neighbours) -> dict[str, int]:
    """Return the tables that can be reached, by the number of steps of the longest way, so that lines never go back."""
    steps: dict[str, int] = {}
    layer = {start}
    # dbt allows no circle, so the longest way ends.
    while layer := {found for one in layer for found in neighbours(one)}:
        distance = max(steps.values(), default=0) + 1
        steps |= dict.fromkeys(layer, distance)
    return steps


def _is_on_way(layers: Mapping[str, int], parent: str, one: str) -> bool:
    """Return whether a line leads to or from the table. A line past it would tell of another way."""
    return parent in layers and (layers[one] <= 0 or layers[parent] >= 0)


def _placed(layers: Mapping[str, int], lines: Sequence[tuple[str, str]]) -> dict[str, _Box]:
    """Place the boxes. From the table outwards, each layer is in the order of the neighbours that have a place."""
    columns: dict[int, list[str]] = {}
    for name in sorted(layers):
        columns.setdefault(layers[name], []).append(name)
    left, x = {}, float(_MARGIN)
    for number in sorted(columns):
        left[number] = x
        x += max(map(_width, columns[number])) + _GAP_X
    tallest = max(map(len, columns.values()))
    near: dict[str, list[str]] = {name: [] for name in layers}
    for one, other in lines:
        near[one].append(other)
        near[other].append(one)
    boxes: dict[str, _Box] = {}

    def wish(name: str) -> float:
        heights = [boxes[other].y for other in near[name] if other in boxes]
        return sum(heights) / len(heights) if heights else 0

    for number in sorted(columns, key=abs):
        y = _MARGIN + (tallest - len(columns[number])) * (_HEIGHT + _GAP_Y) / 2
        for at, name in enumerate(sorted(columns[number], key=wish)):
            boxes[name] = _Box(name, left[number], y + at * (_HEIGHT + _GAP_Y), _width(name))
    return boxes


def _width(name: str) -> float:
    return max(map(len, _in_lines(name))) * _CHARACTER + 2 * _PADDING


def _in_lines(name: str) -> list[str]:
    """Return a name as one line, or as two that end where its words do: broad boxes make a drawing small."""
    seen = visible(name)
    if len(seen) <= _SHORT:
        return [seen]
    ends = [word.end() for word in re.finditer(r"[_.]+(?=.)", seen)] or [len(seen) // 2]
    end = min(ends, key=lambda at: max(at, len(seen) - at))
    return [_shortened(seen[:end]), _shortened(seen[end:])]


def _shortened(line: str) -> str:
    return line if len(line) <= _MOST_CHARACTERS else f"{line[: _MOST_CHARACTERS - 1]}…"


def _line(one: _Box, other: _Box) -> str:
    start, end = one.x + one.width, other.x
    middle = (start + end) / 2
    return (
        f'<path d="M{start:.0f},{one.middle:.0f} C{middle:.0f},{one.middle:.0f} {middle:.0f},{other.middle:.0f}'
        f' {end:.0f},{other.middle:.0f}"/>'
    )


def _drawn(boxes: Iterable[_Box], chosen: str) -> Iterable[str]:
    for box in boxes:
        mark = "row chosen" if box.name == chosen else "row"
        lines = _in_lines(box.name)
        first = box.middle + _LINE * (0.3 - (len(lines) - 1) / 2)
        words = "".join(
            f'<text x="{box.x + _PADDING:.0f}" y="{first + at * _LINE:.0f}">{text(line)}</text>'
            for at, line in enumerate(lines)
        )
        yield (
            f'<a href="#{anchor("table", box.name)}" class="{mark}"><title>{text(box.name)}</title>'
            f'<rect class="frame" x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{_HEIGHT}" rx="6"/>'
            f"{words}</a>"
        )
