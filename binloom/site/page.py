"""The one page of the site: the template, filled from the lineage and the facts."""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files
from typing import Final

from binloom.pages.rendering import style
from binloom.site.areas import STAGES, Area, area_of, feeding_areas, tables_by_area
from binloom.site.facts import Facts, Proof, Source
from binloom.site.lineage import Column, Lineage
from binloom.site.markup import anchor, inline, link, rows, text
from binloom.site.plots import plots
from binloom.site.table_pages import TablePages, badge, section
from ingest.escapes import json_in_script
from ingest.words import counted

_SCRIPTS: Final = ("routes.js", "zoom.js", "way.js", "columns.js", "search.js")
_MOST_PLOTS: Final = 24


def index_page(
    lineage: Lineage, facts: Facts, written_at: datetime, guide: str | None = None, overview: str = ""
) -> str:
    """Return the whole site as one HTML document that loads nothing but itself.

    Parameters
    ----------
    lineage
        The tables, and where each column comes from.
    facts
        What is known about the data.
    written_at
        The time that the page shows as its own.
    guide
        Address of the pages of documentation, as seen from this page, if they are beside it.
    overview
        The project's description of itself, with the questions that its tables answer.
    """
    lineage = _with_all_columns(lineage)
    pages = TablePages(lineage, facts)
    content = [
        _first_page(lineage, facts, pages),
        pages.questions(overview),
        pages.list_of_all(),
        *pages.areas(),
        *pages.tables(),
    ]
    parts = {
        "styles": f"{style('base.css')}\n{_asset('page.css')}",
        "scripts": "\n".join(map(_asset, _SCRIPTS)),
        "guide": f'<a href="{text(guide)}">Guide</a>' if guide else "",
        "written": f"{written_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
        "lineage": json_in_script(json.dumps(_columns_as_numbers(lineage), separators=(",", ":"))),
        "content": "\n".join(content),
    }
    # One pass: a description that contains a placeholder's name is not filled.
    before, *rest = _asset("page.html").split("{{")
    filled = (parts[name] + after for name, after in (piece.split("}}", 1) for piece in rest))
    return before + "".join(filled)


def _asset(name: str) -> str:
    return (files("binloom.site") / "assets" / name).read_text("utf-8")


def _with_all_columns(lineage: Lineage) -> Lineage:
    """Return the lineage with the columns that only its edges name: nothing that is followed is left out."""
    columns = {table.name: {column.name: column for column in table.columns} for table in lineage.tables}
    for edge in lineage.edges:
        for table, column in (edge.source, edge.target):
            columns[table].setdefault(column, Column(column, "", ""))
    tables = tuple(replace(table, columns=tuple(columns[table.name].values())) for table in lineage.tables)
    return Lineage(tables, lineage.edges)


def _columns_as_numbers(lineage: Lineage) -> dict[str, object]:
    """Return the lineage for the script: edges as indexes of tables and columns."""
    table_at = {table.name: index for index, table in enumerate(lineage.tables)}
    column_at = {
        (table.name, column.name): index for table in lineage.tables for index, column in enumerate(table.columns)
    }
    return {
        "tables": [
            {
                "name": table.name,
                "anchor": anchor(table.name),
                "kind": table.kind,
                "area": area_of(table).title,
                "columns": [column.name for column in table.columns],
                "anchors": [anchor(column.name) for column in table.columns],
            }
            for table in lineage.tables
        ],
        "edges": [
            [
                table_at[edge.source[0]],
                column_at[edge.source],
                table_at[edge.target[0]],
                column_at[edge.target],
                int(edge.is_exact),
            ]
            for edge in lineage.edges
        ],
    }


def _first_page(lineage: Lineage, facts: Facts, pages: TablePages) -> str:
    return section(
        f"""<h1>The way of the data</h1>
<p class="lead">binloom reads the binary logs of MySQL and MariaDB servers, and turns them into tables that show who
changed which row, when, and its values before and after. Each box is a step on the way; choose one to see its
tables, or begin with a question: <a href="#look">where to look</a>.</p>
{_way(lineage, facts)}
<h2 id="sources">Sources</h2>
{_sources(facts, pages)}
<h2 id="proofs">Proofs</h2>
{_proofs(pages, facts)}
<h2 id="activity">Activity</h2>
{_activity(facts, pages)}""",
        "The way of the data",
        "start",
    )


def _way(lineage: Lineage, facts: Facts) -> str:
    """Return the picture of the way: the areas as boxes in columns. The script draws the lines between them."""
    feeding = feeding_areas(lineage)
    files_read = sum(source.files for source in facts.sources)
    read = (
        f"{counted(files_read, 'file')} of {counted(len(facts.sources), 'source')}"
        if files_read
        else "files, or a live server"
    )
    logs = [
        _box("logs", "sources", "Binlogs", read, "raw"),
        _box("schemas", "sources", "Schemas", "snapshots of the servers' tables", "raw"),
    ]
    columns = [logs, *([] for _ in STAGES[1:])]
    for area, tables in tables_by_area(lineage).items():
        if area.stage is not None:
            feeds = [one.folder for one, found in feeding.items() if area in found]
            columns[area.stage].append(_area_box(area, len(tables), feeds, facts))
    stages = "".join(
        f'<li><h3>{text(stage)}</h3><div class="boxes">{"".join(boxes)}</div></li>'
        for stage, boxes in zip(STAGES, columns, strict=True)
    )
    return f'<nav class="way" aria-label="The way of the data"><ol>{stages}</ol></nav>'


def _area_box(area: Area, tables: int, feeds: list[str], facts: Facts) -> str:
    brief = counted(tables, "table")
    if area.folder == "marts/quality" and facts.proofs:
        brief += f", {_holding(facts.proofs)}"
    return _box(area.folder, anchor("area", area.folder), area.title, brief, " ".join(feeds))


def _box(name: str, target: str, title: str, brief: str, feeds: str) -> str:
    return (
        f'<a class="box" href="#{target}" data-area="{text(name)}" data-feeds="{text(feeds)}">'
        f"<strong>{text(title)}</strong><span>{text(brief)}</span></a>"
    )


def _sources(facts: Facts, pages: TablePages) -> str:
    if reason := facts.missing.get("binlog_files"):
        return f'<p class="note">No source can be shown. {inline(reason, pages.is_table)}</p>'
    if not facts.sources:
        return (
            '<p class="note">No file of any source is landed yet. Run <code>binloom ingest</code>, then '
            "<code>binloom build</code>.</p>"
        )
    cells = [
        [
            f"<strong>{text(one.name)}</strong>",
            text(one.server),
            f"{one.files:,}",
            _size(one.bytes),
            f"{one.events:,}",
            f"{one.transactions:,}",
            f"{_time(one.first_event_at)} –<br>{_time(one.last_event_at)}",
            _behind(one),
            badge("good", "complete")
            if not one.incomplete_files
            else badge("warning", f"{counted(one.incomplete_files, 'file')} incomplete"),
        ]
        for one in facts.sources
    ]
    titles = ["source", "server", "#files", "#size", "#events", "#transactions", "events, UTC", "#behind", "files"]
    return rows(titles, cells, "Sources") + (
        "<p class='quiet'>“Behind” is the time from the last landed event of a source to the newest of all sources. "
        f"The files are those of {inline('`binlog_files`', pages.is_table)}, as the last build saw them.</p>"
    )


def _behind(source: Source) -> str:
    if source.hours_behind is None:
        return "no event"
    return "0" if source.hours_behind < 0.05 else f"{source.hours_behind:,.1f} h"


def _proofs(pages: TablePages, facts: Facts) -> str:
    if reason := facts.missing.get("proofs"):
        return f'<p class="note">No result of a proof can be shown. {inline(reason, pages.is_table)}</p>'
    shown = folded = ""
    if violated := [one for one in facts.proofs if one.violations]:
        shown = _rows_of_proofs(violated, pages, "Violated proofs")
    if holding := [one for one in facts.proofs if not one.violations]:
        # They are many, and a person must see what is below them.
        table = _rows_of_proofs(holding, pages, "Proofs that hold")
        folded = f"<details><summary>Proofs that hold</summary>{table}</details>"
    built = f" These results are of {_time(facts.proofs_built_at)} UTC." if facts.proofs_built_at else ""
    tested = ""
    if facts.tested_at is not None:
        failed = sum(result.status != "pass" for result in facts.tests.values())
        outcome = f"{failed:,} of them did not pass" if failed else "all of them passed"
        tested = (
            f" dbt ran {counted(len(facts.tests), 'test')}, the last at {_time(facts.tested_at)} UTC, and {outcome}."
        )
    return (
        "<p>A proof uses the logs themselves to show that nothing is missing from the tables and that they are right. "
        f"{_holding(facts.proofs)}.{built}{tested}</p>{shown}{folded}"
    )


def _rows_of_proofs(proofs: Iterable[Proof], pages: TablePages, name: str) -> str:
    cells = [
        [
            link(one.name, "table", one.model) if pages.is_table(one.model) else text(one.name),
            badge("good", "holds") if not one.violations else badge(_kind(one), f"violated ({one.severity})"),
            "<br>".join([f"{one.violations:,}", *_by_source(one)]),
            f"{one.checked:,} {text(one.unit.replace('_', ' '))}",
            inline(one.violation, pages.is_table),
        ]
        for one in proofs
    ]
    return rows(["proof", "result", "#violations", "#checked", "a violation is"], cells, name)


def _by_source(proof: Proof) -> Iterable[str]:
    for source, violations in sorted(proof.by_source.items()):
        yield f'<span class="quiet">{text(source)}: {violations:,}</span>'


def _holding(proofs: Iterable[Proof]) -> str:
    results = [not proof.violations for proof in proofs]
    return f"{sum(results)} of {len(results)} proofs hold"


def _kind(proof: Proof) -> str:
    return "bad" if proof.severity == "error" else "warning"


def _activity(facts: Facts, pages: TablePages) -> str:
    if reason := facts.missing.get("table_activity_hourly"):
        return f'<p class="note">No activity can be shown. {inline(reason, pages.is_table)}</p>'
    if not facts.activity:
        return '<p class="note">No row event is landed yet.</p>'
    drawn = facts.activity[:_MOST_PLOTS]
    others = facts.activity[_MOST_PLOTS:]
    left = (
        f"<p>Row events of {counted(facts.quiet_tables, 'more table')} are not shown.</p>" if facts.quiet_tables else ""
    )
    table = ""
    if others:
        cells = [[text(one.source), text(f"{one.schema}.{one.table}"), f"{one.row_events:,}"] for one in others]
        table = f"<h3>Other tables</h3>{rows(['source', 'table', '#row events'], cells, 'Other tables')}"
    return (
        "<p>Row events by table and hour, as the servers recorded their time (UTC). Every plot has its own scale. "
        f"The figures are those of {inline('`table_activity_hourly`', pages.is_table)}.</p>"
        '<p class="legend"><span class="inserts">inserts</span> <span class="updates">updates</span> '
        f'<span class="deletes">deletes</span></p><div class="plots">{plots(drawn)}</div>{table}{left}'
    )


def _time(moment: datetime | None) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}" if moment else "?"


def _size(number: int) -> str:
    size = float(number)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TiB"
