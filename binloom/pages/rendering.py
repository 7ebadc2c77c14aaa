"""Templates filled with data. Every name and value is data: escaped for HTML, with its invisible characters shown."""

from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ingest.escapes import visible
from ingest.words import counted

LONGEST: Final = 300
"""Characters of a value that is shown at once; the rest unfolds."""
MOST: Final = 20_000
"""Characters of a value or a text that a page has at most: a log has values of a gigabyte."""


def render(template: str, **names: Any) -> str:
    """Return a filled template of `binloom/pages/templates`."""
    return _environment().get_template(template).render(**names)


def style(name: str) -> str:
    """Return a style sheet of `binloom/pages/assets`."""
    return (files("binloom.pages") / "assets" / name).read_text("utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("binloom.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"seen": _seen, "time": _time, "cell": _cell, "count": _count, "text": _text}
    environment.filters |= {"duration": _duration}
    environment.globals["style"] = lambda name: Markup(style(name))
    return environment


def _seen(value: object) -> str:
    return visible(str(value), keep="\n")


def _time(value: datetime | None) -> str:
    if value is None:
        return "unknown"
    text = f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"
    return text.removesuffix(".000000")


def _text(value: str) -> str:
    """Return a text, which is cut if it is very long; it says so."""
    if len(value) <= MOST:
        return _seen(value)
    return f"{_seen(value[:MOST])}… (the first {MOST:,} of {len(value):,} characters)"


def _count(value: int) -> str:
    return f"{value:,}"


def _duration(seconds: float) -> str:
    """Return a time in its largest unit, not rounded up."""
    units = {"day": 86_400, "hour": 3_600, "minute": 60}
    name, length = next(((name, length) for name, length in units.items() if seconds >= length), ("second", 1))
    return counted(int(seconds // length), name)


def _cell(value: str | None) -> Markup:
    """Return a value as HTML: NULL is not the text NULL, and a long text unfolds."""
    if value is None:
        return Markup('<span class="null">NULL</span>')
    text = _text(value)
    if len(value) <= LONGEST:
        return Markup('<span class="value">{}</span>').format(text)
    return Markup(
        '<details class="long"><summary><span class="value">{}</span>… {} characters</summary>'
        '<span class="value">{}</span></details>'
    ).format(_seen(value[:LONGEST]), f"{len(value):,}", text)
