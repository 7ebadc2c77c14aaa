"""A table at a moment: its first rows, whether they are all, and files with all of them."""

from itertools import islice
from typing import Final

from binloom.answers.state_files import csv_lines, write_parquet
from binloom.answers.table_state import state_at, table_state_of
from binloom.ui.opened_log import OpenedLog
from binloom.ui.view import PAGE, Download, View, new_file, show, write_lines
from binloom.ui.words import Words
from ingest.errors import UsageError
from recover.selection.filters import key_text
from recover.sources.log import Log
from recover.timeline.sorted_rows import sorted_rows
from recover.undo.print.inserts import inserts_of

FORMATS: Final = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet", "sql": "application/sql"}
_WORDS: Final = ("table", "as-of", "source")


def _page(log: Log, words: Words, opened: OpenedLog) -> str:
    table, tables = words.one("table"), _tables(log)
    if table is None:
        return show("table.html", words=words, selecting={}, tables=tables, found=None, notes=opened.notes)
    found = table_state_of(log, table, words.one("as-of"), words.one("source"))
    state = found.state
    rows = list(islice(found, PAGE))
    return show(
        "table.html",
        words=words,
        selecting={"table": [str(state.table)], "source": words.several("source")},
        tables=tables,
        found=found,
        state=state,
        table=str(state.table),
        rows=[(row, _key(log, state.table_version_id, row.values)) for row in rows],
        formats=[*FORMATS],
        notes=(*opened.notes, *found.notes),
    )


def _file(log: Log, words: Words, opened: OpenedLog) -> Download:
    kind = words.needed("format")
    if kind not in FORMATS:
        raise UsageError(f"There is no format {kind!r}.", hint=f"Give {', '.join(FORMATS)}.")
    state = state_at(log, words.needed("table"), words.one("as-of"), words.one("source"))
    path = new_file(opened.folder)
    try:
        if kind == "sql":
            write_lines(path, (f"{line}\n" for line in inserts_of(log, state).lines()))
        elif kind == "csv":
            write_lines(path, csv_lines(state.columns, sorted_rows(log.connection, state, log.versions)))
        else:
            write_parquet(state.columns, sorted_rows(log.connection, state, log.versions), path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return Download(path, f"{state.table}.{kind}", FORMATS[kind])


def _tables(log: Log) -> list[tuple[str, str]]:
    """Return source and name of all tables."""
    return sorted({(one.source_id, one.name) for one in log.versions})


def _key(log: Log, version_id: str | None, values: dict[str, str | None]) -> str | None:
    """Return the key of a row as text, None if the table has none."""
    version = next((one for one in log.versions if one.table_version_id == version_id), None)
    parts = [values.get(name) for name in version.primary_key] if version is not None else []
    return key_text(part for part in parts if part is not None) if parts and None not in parts else None


VIEW = View(_WORDS, _page)
FILE = View((*_WORDS, "format"), _file)
