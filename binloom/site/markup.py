"""HTML from names and descriptions, with everything escaped that is data."""

import html
import re
from collections.abc import Callable, Iterable
from typing import Final
from urllib.parse import quote

from ingest.escapes import visible

# On a phone the cells of a row are below each other. With more columns each cell begins with the title of its column.
_FEW_COLUMNS: Final = 4
_INLINE: Final = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\*(\w(?:[^*]*\w)?)\*|\[([^\]]+)\]\(([^)\s]+)\)")
_DBT_LINK: Final = re.compile(r"#!/(?:model|seed|source)/(?:[^/]*\.)?([^./]+)")
_LIST_ITEM: Final = re.compile(r"(?:[-*]|\d+\.)\s+")


def text(value: object) -> str:
    """Return a value as text of HTML, also for attributes in quotes. Invisible characters are shown as escapes."""
    return html.escape(visible(str(value), keep="\n\t"))


def anchor(*parts: str) -> str:
    """Return the id of a part of the page, such as `table/row_changes`; `#` before it makes a link."""
    return "/".join(quote(part.encode("utf-8", "backslashreplace"), safe="._-") for part in parts)


def link(label: object, *parts: str, attributes: str = "") -> str:
    """Return a link to a part of the page."""
    return f'<a href="#{anchor(*parts)}"{attributes}>{text(label)}</a>'


def rows(titles: Iterable[str], cells: Iterable[Iterable[str]], name: str) -> str:
    """Return a table. Titles are text, cells are HTML; a title that begins with `#` is that of a column of numbers."""
    titles = list(titles)
    are_many = len(titles) > _FEW_COLUMNS
    head = "".join(f'<th scope="col"{_kind(title)}>{text(title.removeprefix("#"))}</th>' for title in titles)
    begins = [
        f"<td{_kind(title)}{_label(title) if title.startswith('#') or (are_many and at) else ''}>"
        for at, title in enumerate(titles)
    ]
    body = "".join(
        "<tr>" + "".join(f"{begin}{cell}</td>" for begin, cell in zip(begins, row, strict=True)) + "</tr>\n"
        for row in cells
    )
    breadth = "many stacked" if are_many else "stacked"
    return (
        f'<div class="wide" role="region" aria-label="{text(name)}" tabindex="0"><table class="{breadth}">'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def prose(description: str, is_table: Callable[[str], bool]) -> str:
    """Return a description, in the Markdown that descriptions of dbt use, as HTML.

    Parameters
    ----------
    description
        Paragraphs, headings, lists, tables and blocks of code.
    is_table
        Whether a name is that of a table with a page of its own.
    """
    return "\n".join(_block(block, is_table) for block in _blocks(description))


def inline(line: str, is_table: Callable[[str], bool]) -> str:
    """Return a line of a description as HTML: code, bold text, and links to tables."""
    done, at = [], 0
    for match in _INLINE.finditer(line):
        done.append(text(line[at : match.start()]))
        done.append(_piece(match, is_table))
        at = match.end()
    return "".join([*done, text(line[at:])])


def _piece(match: "re.Match[str]", is_table: Callable[[str], bool]) -> str:
    code, bold, stressed, label, target = match.groups()
    if code is not None:
        return f"<code>{link(code, 'table', code) if is_table(code) else text(code)}</code>"
    if bold is not None:
        return f"<strong>{text(bold)}</strong>"
    if stressed is not None:
        return f"<em>{text(stressed)}</em>"
    table = _DBT_LINK.fullmatch(target)
    if table is not None and is_table(table[1]):
        return link(label, "table", table[1])
    # Links to files of the project lead nowhere from here.
    return f'<a href="{text(target)}">{text(label)}</a>' if target.startswith("https://") else text(label)


def _blocks(description: str) -> Iterable[list[str]]:
    """Yield the lines of each block. Blank lines separate blocks, but belong to a block of code."""
    block: list[str] = []
    for line in description.split("\n"):
        in_code = bool(block) and block[0].startswith("```")
        if in_code and line.startswith("```"):
            yield block
            block = []
        elif in_code or line.strip():
            if not in_code and block and line.startswith(("#", "```")):
                yield block
                block = []
            block.append(line)
            if not in_code and line.startswith("#"):
                yield block
                block = []
        elif block:
            yield block
            block = []
    if block:
        yield block


def _block(lines: list[str], is_table: Callable[[str], bool]) -> str:
    first = lines[0]
    if first.startswith("```"):
        return f"<pre><code>{text(chr(10).join(lines[1:]))}</code></pre>"
    if first.startswith("#"):
        return f"<h3>{inline(first.lstrip('# '), is_table)}</h3>"
    if first.startswith("|") and len(lines) > 1:
        cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
        width = len(cells[0])
        body = [[inline(cell, is_table) for cell in (row + [""] * width)[:width]] for row in cells[2:]]
        return rows(cells[0], body, "Table")
    if _LIST_ITEM.match(first):
        return f"<ul>{''.join(f'<li>{inline(item, is_table)}</li>' for item in _items(lines))}</ul>"
    return f"<p>{inline(' '.join(lines), is_table)}</p>"


def _items(lines: list[str]) -> list[str]:
    items: list[str] = []
    for line in lines:
        if match := _LIST_ITEM.match(line):
            items.append(line[match.end() :])
        else:
            items[-1] += f" {line.strip()}"
    return items


def _kind(title: str) -> str:
    return ' class="number"' if title.startswith("#") else ""


def _label(title: str) -> str:
    return f' data-title="{text(title.removeprefix("#"))}"'
