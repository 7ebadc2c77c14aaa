"""Draws curves over time, or over another quantity, as an SVG: panels one below the other with a common axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import floor, log10
from pathlib import Path

WIDTH, PANEL_HEIGHT, GAP = 860, 150, 46
LEFT, RIGHT, TOP = 64, 26, 44
COLOURS = ("#0b6e99", "#d9730d", "#448361")
GRID, TEXT = "#d5d5d5", "#555555"


@dataclass(frozen=True)
class Curve:
    """A curve: `points` are (seconds, value), or (another quantity, value)."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """Curves with a common value axis."""

    title: str
    curves: Sequence[Curve]


@dataclass(frozen=True)
class Axis:
    """The horizontal axis: the name of its unit, and how many of the points' own units make one."""

    unit: str = "min"
    size: float = 60.0


MINUTES = Axis()


def write_svg(path: Path, title: str, panels: Sequence[Panel], axis: Axis = MINUTES) -> None:
    """Write the panels to a file.

    Parameters
    ----------
    title
        Title above all panels.
    panels
        From top to bottom.
    axis
        The horizontal axis of all panels.
    """
    longest = max(place for panel in panels for curve in panel.curves for place, _ in curve.points)
    height = TOP + len(panels) * (PANEL_HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        f'font-size="12" fill="{TEXT}">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-size="14" fill="black">{escape(title)}</text>',
    ]
    for number, panel in enumerate(panels):
        parts += _panel(panel, TOP + number * (PANEL_HEIGHT + GAP), longest, axis)
    path.write_text("\n".join([*parts, "</svg>"]) + "\n")


def _panel(panel: Panel, top: float, longest: float, axis: Axis) -> list[str]:
    step = _step(max(value for curve in panel.curves for _, value in curve.points) / 4)
    largest = step * max(1, -(-max(value for curve in panel.curves for _, value in curve.points) // step))
    bottom, right = top + PANEL_HEIGHT, WIDTH - RIGHT
    across, up = (right - LEFT) / longest, PANEL_HEIGHT / largest
    parts = [f'<text x="{LEFT}" y="{top - 8}" fill="black">{escape(panel.title)}</text>']
    for line in range(round(largest / step) + 1):
        y = bottom - line * step * up
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="{GRID}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{line * step:g}</text>')
    step_across = max(1, round(_step(longest / axis.size / 10)))
    for units in range(0, floor(longest / axis.size) + 1, step_across):
        x = LEFT + units * axis.size * across
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{units} {axis.unit}</text>')
    legend = right
    for curve, colour in zip(panel.curves, COLOURS, strict=False):
        points = " ".join(f"{LEFT + second * across:.1f},{bottom - value * up:.1f}" for second, value in curve.points)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    for curve, colour in reversed(list(zip(panel.curves, COLOURS, strict=False))):
        parts.append(f'<text x="{legend}" y="{top - 8}" text-anchor="end" fill="{colour}">{escape(curve.name)}</text>')
        legend -= 7 * len(curve.name) + 18
    return parts


def _step(wanted: float) -> float:
    """Return 1, 2 or 5 times a power of ten that is at least the given step."""
    power = 10.0 ** floor(log10(max(wanted, 1e-9)))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= wanted * 0.999)
