"""Random statements that define tables, and rows between them: each row has its right names and values, or a reason.

A server that logs all names gives the expected rows; the same statements run on one that logs none. MySQL 5.6 cannot
log names: there each row is compared with the columns that the server has when the row changes.
"""

import random
import re
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pymysql
import pytest

from ingest.sources.snapshot import SchemaSnapshot
from recover.selection.filters import Filters
from recover.sources.log import Log
from tests.servers import ALL_DISTRIBUTIONS, Server
from tests.servers.marked import marked
from tests.servers.names import quoted
from tests.servers.odd_ddl import DATABASES, OddDdl, TableName
from tests.support.landing.binlogs import snapshot_of

pytestmark = pytest.mark.slow

SEEDS = eval(__import__("os").environ.get("SEEDS", "range(7,8)"))
STEPS = 160
NOON = 1793534400
KINDS = {"mysql": "mysql", "mysql56": "mysql-5.6", "mariadb": "mariadb", "mariadb118": "mariadb-11.8"}
OPTIONS = {
    "mysql": (["--binlog-row-metadata=FULL"], ["--binlog-row-metadata=MINIMAL"]),
    "mysql56": ([],),
    "mariadb": (["--binlog-row-metadata=FULL"], ["--binlog-row-metadata=NO_LOG"]),
    "mariadb118": (["--binlog-row-metadata=FULL"], ["--binlog-row-metadata=NO_LOG"]),
}
ROWS = """
select binlog_file, start_pos, payload_ordinal, row_ordinal, schema_name, table_name, null as reason, row_before,
    row_after
from binloom.row_changes
union all by name
select binlog_file, start_pos, payload_ordinal, row_ordinal, schema_name, table_name, concat_ws(': ', reason, detail)
    as reason
from binloom.quarantined_row_events
order by binlog_file, start_pos, payload_ordinal, row_ordinal"""
OF_COLUMNS = """
select table_schema, table_name, column_name, data_type, extra
from information_schema.columns inner join information_schema.tables using (table_schema, table_name)
where table_schema in %s and table_type not in ('VIEW', 'SEQUENCE')
order by table_schema, table_name, ordinal_position"""
NUMBERS = {"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "double", "float"}
TEXTS = {"varchar", "char", "text", "tinytext", "mediumtext", "longtext"}
BYTES = {"varbinary", "binary", "blob", "tinyblob", "mediumblob", "longblob"}


@dataclass(frozen=True)
class Row:
    """A row change: either its images, or the reason for which it is in quarantine."""

    position: tuple[str, int]
    table: tuple[str, str]
    reason: str | None
    before: dict[str, str | None] | None
    after: dict[str, str | None] | None

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return [*((self.after if self.after is not None else self.before) or ())]


@dataclass
class Story:
    """What the servers logged.

    Attributes
    ----------
    files
        Of each server.
    first
        Number of the first file after a quarter of the statements.
    snapshots
        Of the last server, after a quarter, the half and all of the statements.
    columns
        From a file and a position on: the columns of all tables. Only of MySQL 5.6.
    statements
        All that were run, with the error of each that was refused.
    """

    files: list[list[Path]] = field(default_factory=list)
    first: int = 0
    snapshots: dict[str, SchemaSnapshot] = field(default_factory=dict)
    columns: list[tuple[tuple[str, int], dict[TableName, list[str]]]] = field(default_factory=list)
    statements: list[tuple[str, str | None]] = field(default_factory=list)

    def of(self, table: tuple[str, str]) -> str:
        """Return the statements that define a table, as far as they contain its name and were not refused."""
        words = table[1], quoted(table[1])
        return "\n".join(
            text
            for text, error in self.statements
            if error is None
            and any(one in text for one in words)
            and not text.startswith(("insert", "update", "delete"))
        )


class Session:
    """Connections to several servers, on which the same statements run."""

    def __init__(self, servers: Sequence[Server], story: Story) -> None:
        self._cursors = [server.connect(charset="utf8mb4", autocommit=True).cursor() for server in servers]
        self._look = servers[0].connect(charset="utf8mb4", autocommit=True).cursor()
        self._story = story

    def run(self, statement: str) -> None:
        """Run a statement, which may be refused."""
        errors: list[str | None] = []
        for cursor in self._cursors:
            try:
                cursor.execute(statement)
                errors.append(None)
            except pymysql.Error as error:
                errors.append(str(error))
        assert len({error is None for error in errors}) == 1, (statement, errors)
        self._story.statements.append((statement, errors[0]))

    def position(self) -> tuple[str, int]:
        """Return the position of the log of MySQL 5.6."""
        self._look.execute("show master status")
        (file, position, *_), *_ = self._look.fetchall()
        return file, position

    def tables(self) -> dict[TableName, list[tuple[str, str, str]]]:
        """Return name, type and EXTRA of the columns of all tables."""
        self._look.execute(OF_COLUMNS, (DATABASES,))
        found: dict[TableName, list[tuple[str, str, str]]] = {}
        for schema, table, *column in self._look.fetchall():
            name, data_type, extra = (one.decode() if isinstance(one, bytes) else one for one in column)
            found.setdefault((schema, table), []).append((name, data_type.lower(), extra.lower()))
        return found


def told(kind: str, seed: int, folder: Path) -> Story:
    """Let servers run random statements, and rows between them."""
    story, chance = Story(), random.Random(seed)
    distribution = ALL_DISTRIBUTIONS[KINDS[kind]]
    with ExitStack() as running:
        servers = [
            running.enter_context(distribution.start(folder / f"server{n}", options))
            for n, options in enumerate(OPTIONS[kind])
        ]
        session = Session(servers, story)
        last = servers[-1]
        ddl = OddDdl(seed, last.flavor)
        for statement in (
            "create database d1 character set utf8mb4",
            "create database d2 character set latin1",
            "use d1",
        ):
            session.run(statement)
        session.run("set sql_mode = ''")
        for step in range(STEPS):
            if step == STEPS // 4:
                for server in servers:
                    server.flush()
                story.first = len(last.binlogs()) - 1
                story.snapshots["begin"] = snapshot_of(last.host, last.port)
            if step == STEPS // 2:
                story.snapshots["middle"] = snapshot_of(last.host, last.port)
            session.run(f"set timestamp = {NOON + 7 * step}")
            if chance.randrange(6) == 0:
                session.run(ddl.session())
            before = {table: [name for name, *_ in columns] for table, columns in session.tables().items()}
            # The rows of CREATE TABLE … SELECT are part of the statement.
            position = session.position() if kind == "mysql56" else ("", 0)
            session.run(ddl.statement(before))
            tables = session.tables()
            story.columns.append((position, {table: [name for name, *_ in one] for table, one in tables.items()}))
            for table in chance.sample([*tables], min(len(tables), 2)):
                for statement in row_changes(table, tables[table], chance):
                    session.run(statement)
        story.snapshots["end"] = snapshot_of(last.host, last.port)
        for number, server in enumerate(servers):
            server.flush()
            files = folder / f"files{number}"
            files.mkdir()
            story.files.append([Path(shutil.copy(path, files)) for path in server.binlogs()[:-1]])
    return story


def row_changes(table: TableName, columns: Sequence[tuple[str, str, str]], chance: random.Random) -> list[str]:
    """Return statements that insert, and perhaps update and delete, rows of a table."""
    name = f"{quoted(table[0])}.{quoted(table[1])}"
    given = {
        column: value
        for column, data_type, extra in columns
        if not any(word in extra for word in ("generated", "row start", "row end", "auto_inc"))
        and (value := value_of(data_type, chance)) is not None
    }
    if not chance.randrange(3):
        given = {}
    names, values = ", ".join(map(quoted, given)), ", ".join(given.values())
    statements = [f"insert ignore into {name} ({names}) values ({values})"]
    if given and chance.randrange(2):
        column, value = chance.choice([*given.items()])
        statements.append(f"update ignore {name} set {quoted(column)} = {value} limit 2")
    if not chance.randrange(6):
        statements.append(f"delete from {name} limit 1")
    return statements


def value_of(data_type: str, chance: random.Random) -> str | None:
    """Return a literal for a column of a type, None to leave it to the server."""
    number = chance.randrange(-90, 100)
    if data_type in NUMBERS:
        return str(number)
    if data_type in TEXTS:
        return chance.choice([f"'w{number}'", "convert(0xC3A9 using utf8mb4)", "'  sp '"])
    if data_type in BYTES:
        return chance.choice([f"x'{abs(number):04x}'", "'bytes'"])
    others = {
        "enum": str(chance.randrange(1, 3)),
        "set": str(chance.randrange(1, 3)),
        "bit": str(abs(number) % 2),
        "json": f"'{{\"a\": {number}}}'",
        "year": "'2026'",
        "time": f"'00:00:{abs(number) % 60:02d}'",
        **dict.fromkeys(("date", "datetime", "timestamp"), f"'2026-11-{abs(number) % 28 + 1:02d}'"),
    }
    return others.get(data_type)


def rows_of(paths: Sequence[Path], snapshot: SchemaSnapshot | None) -> list[Row]:
    """Return the rows of files in their order."""
    log = Log.of_files(paths, Filters(), snapshot=snapshot)
    assert log.problems == ()
    found: list[tuple[Any, ...]] = log.connection.execute(ROWS).fetchall()
    return [Row(row[:2], row[4:6], *row[6:]) for row in found]


def columns_at(story: Story, row: Row) -> dict[str, str | None]:
    """Return the columns of a row's table at its position."""
    (*_, columns) = (columns for position, columns in story.columns if position <= row.position)
    return dict.fromkeys(columns[row.table])


def in_lower_case(names: Sequence[str]) -> list[str]:
    return [name.casefold() for name in names]


def values_of(row: Row) -> list[list[str | None]]:
    return [[*image.values()] for image in (row.before, row.after) if image is not None]


def has_broken_label(row: Row) -> bool:
    """Return whether MySQL has made a label of bytes that are no text; its own statements show an empty label."""
    return any(re.search(r"\\x[0-9a-f]{2}", value or "") for values in values_of(row) for value in values)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", marked("mysql", "mysql56", "mariadb", deep=("mariadb118",)))
def test_each_row_has_its_names_and_values_or_a_reason(kind: str, seed: int, tmp_path: Path) -> None:
    story = told(kind, seed, tmp_path)
    logged = rows_of(story.files[0], None) if len(story.files) > 1 else []
    for row in logged:
        assert row.reason is None, f"{row.reason}:\n{story.of(row.table)}"
    for first in (0, story.first):
        files = story.files[-1][first:]
        alone = rows_of(files, None)
        expected = logged[-len(alone) :] or [
            replace(row, reason=None, before=None, after=columns_at(story, row)) for row in alone
        ]
        assert len(alone) == len(expected) > 50
        for snapshot in (None, *story.snapshots):
            found = alone if snapshot is None else rows_of(files, story.snapshots[snapshot])
            for row, right, known in zip(found, expected, alone, strict=True):
                where = f"with snapshot {snapshot} and files from {first}:\n{story.of(right.table)}"
                if row.reason is None:
                    # A statement may spell the old name of a column in other letters than the table.
                    assert (row.table, in_lower_case(row.names)) == (right.table, in_lower_case(right.names)), where
                    knows_values = len(story.files) > 1 and not has_broken_label(right)
                    assert not knows_values or values_of(row) == values_of(right), where
                # The beginning of the log is unknown: a later snapshot may show that it was otherwise than it looked.
                elif not first:
                    assert known.reason is not None, f"{row.reason}, {where}"
        if not first:
            missing = [row for row in alone if row.reason is not None]
            for row in missing:
                # The character set of the connection, through which labels pass, is not landed.
                assert "labels" in str(row.reason), f"{row.reason}:\n{story.of(row.table)}"
            assert len(missing) < len(alone) / 10
