"""Writes the tables of `docs/formats.md` from the programs' behaviour, and parses them again.

`python -m tools.format_page` writes the page; `test_formats_page.py` compares it with the programs.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.servers import mysql
from tests.support.binlog.format_programs import COLUMN_PROGRAMS, EVENT_PROGRAMS
from tests.support.binlog.format_specimens import COLUMNS, EVENTS
from tests.support.places import PROJECT

PAGE = PROJECT / "docs" / "formats.md"

Cells = dict[str, dict[str, str]]
Notes = dict[str, dict[str, str]]

NO_SERVER = "No server writes it to a file."
BEFORE_5_0 = "MySQL 4.1 and before; in a file of format 3."
ON_REQUEST = "A stream gives it only when it is asked for."
WITH_A_SNAPSHOT = "With a snapshot of the table; named without one."
OF_MARIADB = "MySQL's tool stops at rows of version 1 and at MariaDB's own types."


def _notes(names: Iterable[str], program: str, note: str) -> Notes:
    return {name: {program: note} for name in names}


OF_MARIADB_NAMES = [specimen.name for specimen in EVENTS if specimen.code >= 160]
EVENT_NOTES: Notes = {
    **_notes(("START_V3", "LOAD", "CREATE_FILE", "EXEC_LOAD", "NEW_LOAD"), "mysqlbinlog", BEFORE_5_0),
    **_notes(("SLAVE", "HEARTBEAT", "HEARTBEAT_V2"), "mysqlbinlog", NO_SERVER),
    **_notes(("WRITE_ROWS_V0", "UPDATE_ROWS_V0", "DELETE_ROWS_V0"), "binloom", WITH_A_SNAPSHOT),
    **_notes(("WRITE_ROWS_V1", "UPDATE_ROWS_V1", "DELETE_ROWS_V1", *OF_MARIADB_NAMES), "mysqlbinlog", OF_MARIADB),
    "INTVAR": {"mysql-replication": ON_REQUEST},
    "EXECUTE_LOAD_QUERY": {"mysql-replication": "Without the statement."},
    "INCIDENT": {"mysqlbinlog": "Without the server's message."},
    "PREVIOUS_GTIDS": {"mysql-replication": "The end of each interval is one too high."},
    "PARTIAL_UPDATE_ROWS": {
        "mysqlbinlog": "As the changes of the document.",
        "mysql-replication": "As the changes of the document.",
        "binloom": "As the whole document after the change; as the changes where the log has no document.",
    },
    "TRANSACTION_PAYLOAD": {"mysql-replication": "And with it every change of the transaction."},
}
COLUMN_NOTES: Notes = {
    "FLOAT of nine digits": {"mysqlbinlog": "Six digits."},
    "YEAR 0000": {"mysqlbinlog": "1900.", "mysql-replication": "1900."},
    "DATE, zero": {"mysql-replication": "None, as for NULL."},
    "DATETIME2, zero": {"mysql-replication": "None, as for NULL."},
    "TIME2, negative with a fraction": {"mysql-replication": "Another fraction."},
    "VARCHAR utf16": {"mysql-replication": "Read as little-endian."},
    "STRING (BINARY), padded": {
        "mysqlbinlog": "Without its trailing zeros.",
        "mysql-replication": "Without its trailing zeros.",
    },
    "ENUM": {"mysqlbinlog": "As the label's number."},
    "SET": {"mysqlbinlog": "As bits."},
    "VECTOR": {"mysqlbinlog": "As numbers of six digits.", "binloom": "As the bytes that `SELECT` gives, in hex."},
    "GEOMETRY": {"mysqlbinlog": "It stops inside the row."},
    "LONG unsigned, MINIMAL": {"mysql-replication": "It reads the metadata only with FULL."},
    "VARCHAR latin1, MINIMAL": {"mysql-replication": "It takes every text for UTF-8."},
    "BLOB, MINIMAL": {"mysql-replication": "It takes every BLOB for UTF-8."},
}


def observed(specimens: Sequence[Any], programs: dict[str, Callable[[Any, Path], str]]) -> Cells:
    """Run every program on every specimen."""
    cells: Cells = {}
    for specimen in specimens:
        with tempfile.TemporaryDirectory() as folder:
            path = specimen.file(Path(folder))
            cells[specimen.name] = {name: ask(specimen, path) for name, ask in programs.items()}
    return cells


def written() -> tuple[Cells, Cells]:
    """Return the page's cells: for event types, and for column types."""
    events, columns = re.findall(r"{% docs \w+ %}\n(.*?){% enddocs %}", PAGE.read_text(), re.DOTALL)
    return _parsed(events), _parsed(columns)


def headings() -> list[str]:
    """Return the programs' names and versions as in the headings of the page's tables."""
    return [
        f"mysqlbinlog {'.'.join(mysql.version.split('.')[:2])}",
        f"mysql-replication {version('mysql-replication')}",
        "binloom",
    ]


def _parsed(block: str) -> Cells:
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in block.splitlines() if line[:1] == "|"]
    programs = [heading.split(" ")[0] for heading in rows[0][1:]]
    return {row[0]: dict(zip(programs, (cell.split(" ")[0] for cell in row[1:]), strict=True)) for row in rows[2:]}


def _table(first: str, cells: Cells, notes: Notes) -> str:
    numbers: dict[str, int] = {}
    lines = ["| " + " | ".join([first, *headings()]) + " |", "|---|---|---|---|"]
    for name, words in cells.items():
        row = [name]
        for program, word in words.items():
            note = notes.get(name, {}).get(program)
            row.append(f"{word} ({numbers.setdefault(note, len(numbers) + 1)})" if note else word)
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join([*lines, "", *(f"{number}. {note}" for note, number in numbers.items())]) + "\n"


def main() -> None:
    page = PAGE.read_text()
    for block, table in (
        ("event_type_support", _table("event type", observed(EVENTS, EVENT_PROGRAMS), EVENT_NOTES)),
        ("column_type_support", _table("column type", observed(COLUMNS, COLUMN_PROGRAMS), COLUMN_NOTES)),
    ):
        start = page.index(f"{{% docs {block} %}}\n") + len(f"{{% docs {block} %}}\n")
        page = page[:start] + table + page[page.index("{% enddocs %}", start) :]
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
