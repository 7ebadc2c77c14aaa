"""The picture of the README: the incident of the demo, drawn from what `binloom demo` printed.

`binloom demo | python -m tools.demo_picture` records docs/images/incident.txt again and draws it; `make generate`
draws what is recorded.
"""

import io
import re
import sys
import textwrap
from typing import Final

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tests.support.places import PROJECT

RECORDED: Final = PROJECT / "docs" / "images" / "incident.txt"
PICTURE: Final = RECORDED.with_suffix(".svg")
_WIDTH: Final = 112
_STYLES: Final = {
    r"(?m)^\$ .*$|^ +\$ .*$": "bold",
    r"(?m)^(Which|What|SQL) .*$": "bold cyan",
    r"'cancelled'|cancelled": "red",
    r"→|─+": "bright_black",
    r"(?<=; )proved|\bcancelled → shipped\b": "bold green",
    r"\b(UPDATE|SET|WHERE|AND|CAST|CONVERT|USING|AS BINARY)\b": "magenta",
}
# Rich's own frame loads a font from the network.
_FRAME: Final = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font: bold 18px sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def recorded(printed: str) -> str:
    """Return the part of what the demo printed that shows the incident, without the folders of a machine."""
    start = printed.index("Which transaction did the damage")
    end = printed.index("\n", printed.index("    UPDATE "))
    return re.sub(r"--output \S+/", "--output ", f"$ binloom demo\n...\n{printed[start:end]}\n")


def picture(text: str) -> str:
    """Return a text as the picture of a terminal."""
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    lines = Text("\n".join(map(_wrapped, text.splitlines())))
    for pattern, style in _STYLES.items():
        lines.highlight_regex(pattern, style)
    console.print(lines)
    drawn = console.export_svg(title="binloom", theme=MONOKAI, code_format=_FRAME, unique_id="incident")
    return "\n".join(line.strip() for line in drawn.splitlines() if line.strip()) + "\n"


def _wrapped(line: str) -> str:
    """Return a line in parts that fit, each further one behind the margin of the first."""
    margin = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(line, _WIDTH, subsequent_indent=margin, break_on_hyphens=False, break_long_words=False)


if __name__ == "__main__":
    RECORDED.write_text(recorded(sys.stdin.read()))
    PICTURE.write_text(picture(RECORDED.read_text()))
