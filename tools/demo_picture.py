"""The picture of the README: the beginning of the report that the demo writes about its incident.

`python -m tools.demo_picture REPORT` records docs/images/incident.txt from a report, such as
`.binloom/demo/incident-shop-mysql.html`; `make generate` draws what is recorded.
"""

import re
import sys
from pathlib import Path
from typing import Final

from binloom.pages.rendering import style
from tests.support.places import PROJECT

RECORDED: Final = PROJECT / "docs" / "images" / "incident.txt"
PICTURE: Final = RECORDED.with_suffix(".svg")
_WIDTH: Final = 1000
_HEIGHT: Final = 1320
_ROW: Final = '<details class="row"'
# A picture in a page loads nothing; browsers draw the HTML in it with the fonts that they have.
_FRAME: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">
<foreignObject width="{width}" height="{height}">
<body xmlns="http://www.w3.org/1999/xhtml" style="height: {height}px">
<style><![CDATA[
{style}
]]></style>
<main>
{report}
</main>
</body>
</foreignObject>
</svg>
"""


def recorded(report: str) -> str:
    """Return the part of a report that the picture shows, as XML, without the time at which it was written."""
    second_row = report.index(_ROW, report.index(_ROW) + 1)
    change = report[report.index("<h1>") : second_row].rstrip()
    undo = report[report.index('<h2 id="undo">') : report.index("<details><summary>The script")].rstrip()
    parts = re.sub(r"<div><dt>Written</dt>.*</div>\n", "", f"{change}\n</article>\n\n{undo}\n")
    # An attribute of XML has a value, and elements of SVG are in a space of their own.
    return parts.replace(" open>", ' open="">').replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ')


def picture(report: str) -> str:
    """Return the recorded part of a report as SVG, in the look of now."""
    styles = "\n".join(map(style, ("base.css", "report.css")))
    return _FRAME.format(width=_WIDTH, height=_HEIGHT, style=styles, report=report)


if __name__ == "__main__":
    RECORDED.write_text(recorded(Path(sys.argv[1]).read_text()))
