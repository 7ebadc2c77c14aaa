"""Statements that define tables, and rows between them, on servers of one kind: told once, and played again in part."""

import random
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql

from ingest.sources.snapshots.snapshot import SchemaSnapshot
from tests.servers import ALL_DISTRIBUTIONS, Server
from tests.servers.names import quoted
from tests.servers.odd_ddl import DATABASES, OddDdl, TableName
from tests.support.landing.binlogs import snapshot_of

NOON = 1793534400
KINDS = {"mysql": "mysql", "mysql56": "mysql-5.6", "mariadb": "mariadb", "mariadb118": "mariadb-11.8"}
OPTIONS = {
    "mysql": (["--binlog-row-metadata=FULL"], ["--binlog-row-metadata=MINIMAL"]),
    "mysql56": ([],),
    "mariadb": (["--binlog-row-metadata=FULL"], ["--binlog-row-metadata=NO_LOG"]),
    "mariadb118": (["--binlog-row-metadata=FULL"], ["--binlog-row-metadata=NO_LOG"]),
}
OF_COLUMNS = """
select table_schema, table_name, column_name, data_type, extra
from information_schema.columns inner join information_schema.tables using (table_schema, table_name)
where table_schema in %s and table_type not in ('VIEW', 'SEQUENCE')
order by table_schema, table_name, ordinal_position"""
BEGINNING = (
    "create database d1 character set utf8mb4",
    "create database d2 character set latin1",
    "use d1",
    "set sql_mode = ''",
)
OF_ROWS = ("insert", "update", "delete")
NUMBERS = {"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "double", "float"}
TEXTS = {"varchar", "char", "text", "tinytext", "mediumtext", "longtext"}
BYTES = {"varbinary", "binary", "blob", "tinyblob", "mediumblob", "longblob"}

LATER = "-- the files from here on are read alone, too"
SNAPSHOT = "-- snapshot "
"""Lines of a story that are no statements."""


@dataclass
class Story:
    """What the servers logged.

    Attributes
    ----------
    lines
        All statements, and lines that are none.
    files
        Of each server.
    first
        Number of the first file behind `LATER`.
    snapshots
        Of the last server, by the word behind `SNAPSHOT`.
    columns
        From a file and a position on: the columns of all tables. Only of a server that cannot log names.
    refused
        The statements that the servers refused.
    """

    lines: list[str] = field(default_factory=list)
    files: list[list[Path]] = field(default_factory=list)
    first: int = 0
    snapshots: dict[str, SchemaSnapshot] = field(default_factory=dict)
    columns: list[tuple[tuple[str, int], dict[TableName, list[str]]]] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)

    def of(self, table: tuple[str, str]) -> str:
        """Return the statements that define a table, as far as they contain its name and were not refused."""
        words = table[1], quoted(table[1])
        return "\n".join(
            line
            for line in self.lines
            if line not in self.refused and not line.startswith(OF_ROWS) and any(one in line for one in words)
        )


class Stage:
    """Servers of one kind, which log names in different ways."""

    def __init__(self, servers: Sequence[Server], folder: Path) -> None:
        self.servers = servers
        self._folder = folder
        self._played = 0

    def tell(self, seed: int, steps: int, before_step: Callable[[int], None] = lambda step: None) -> Story:
        """Let the servers run random statements, and rows between them."""
        chance, ddl = random.Random(seed), OddDdl(seed, self.servers[-1].flavor)
        with self._playing() as play:
            for line in BEGINNING:
                play.take(line)
            for step in range(steps):
                before_step(step)
                for line in ([SNAPSHOT + "begin", LATER] if step == steps // 4 else []) + (
                    [SNAPSHOT + "middle"] if step == steps // 2 else []
                ):
                    play.take(line)
                play.take(f"set timestamp = {NOON + 7 * step}")
                if chance.randrange(6) == 0:
                    play.take(ddl.session())
                play.take(ddl.statement(names_of(play.tables())))
                tables = play.tables()
                for table in chance.sample([*tables], min(len(tables), 2)):
                    for line in row_changes(table, tables[table], chance):
                        play.take(line)
            play.take(SNAPSHOT + "end")
        return play.story

    def play(self, lines: Iterable[str]) -> Story:
        """Let the servers run the lines of a story, or some of them."""
        with self._playing() as play:
            for line in lines:
                play.take(line)
        return play.story

    @contextmanager
    def _playing(self) -> Iterator["_Play"]:
        """Play a story that begins in a new file, without tables."""
        firsts = []
        for server in self.servers:
            server.execute(*(f"drop database if exists {name}" for name in DATABASES))
            server.flush()
            firsts.append(len(server.binlogs()) - 1)
        play = _Play(self.servers)
        yield play
        play.close()
        self._played += 1
        for number, (server, first) in enumerate(zip(self.servers, firsts, strict=True)):
            server.flush()
            folder = self._folder / f"files{number}-{self._played}"
            folder.mkdir()
            play.story.files.append([Path(shutil.copy(path, folder)) for path in server.binlogs()[first:-1]])


@contextmanager
def stage(kind: str, folder: Path) -> Iterator[Stage]:
    """Start the servers of a kind."""
    with ExitStack() as running:
        servers = [
            running.enter_context(ALL_DISTRIBUTIONS[KINDS[kind]].start(folder / f"server{number}", options))
            for number, options in enumerate(OPTIONS[kind])
        ]
        yield Stage(servers, folder)


class _Play:
    """Connections to several servers, on which the same statements run."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self.story = Story()
        self._servers = servers
        self._connections = [server.connect() for server in servers]
        self._look = servers[0].connect()
        self._shows_columns = len(servers) == 1

    def close(self) -> None:
        for connection in (*self._connections, self._look):
            connection.close()

    def take(self, line: str) -> None:
        """Run a statement, which may be refused, or do what another line says."""
        self.story.lines.append(line)
        if line == LATER:
            for server in self._servers:
                server.flush()
            self.story.first += 1
        elif line.startswith(SNAPSHOT):
            last = self._servers[-1]
            self.story.snapshots[line.removeprefix(SNAPSHOT)] = snapshot_of(last.host, last.port)
        else:
            # The rows of CREATE TABLE … SELECT are part of the statement.
            is_shown = self._shows_columns and not line.startswith(OF_ROWS)
            position = self._position() if is_shown else ("", 0)
            self._run(line)
            if is_shown:
                self.story.columns.append((position, names_of(self.tables())))

    def _run(self, statement: str) -> None:
        errors: list[str | None] = []
        for connection in self._connections:
            try:
                connection.cursor().execute(statement)
                errors.append(None)
            except pymysql.Error as error:
                errors.append(str(error))
        assert len({error is None for error in errors}) == 1, (statement, errors)
        if errors[0] is not None:
            self.story.refused.add(statement)

    def _position(self) -> tuple[str, int]:
        cursor = self._look.cursor()
        cursor.execute("show master status")
        (file, position, *_), *_ = cursor.fetchall()
        return file, position

    def tables(self) -> dict[TableName, list[tuple[str, str, str]]]:
        """Return name, type and EXTRA of the columns of all tables."""
        cursor = self._look.cursor()
        cursor.execute(OF_COLUMNS, (DATABASES,))
        found: dict[TableName, list[tuple[str, str, str]]] = {}
        for schema, table, *column in cursor.fetchall():
            name, data_type, extra = (one.decode() if isinstance(one, bytes) else one for one in column)
            found.setdefault((schema, table), []).append((name, data_type.lower(), extra.lower()))
        return found


def names_of(tables: dict[TableName, list[tuple[str, str, str]]]) -> dict[TableName, list[str]]:
    """Return only the names of columns."""
    return {table: [name for name, *_ in columns] for table, columns in tables.items()}


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
    others: dict[str, Any] = {
        "enum": str(chance.randrange(1, 3)),
        "set": str(chance.randrange(1, 3)),
        "bit": str(abs(number) % 2),
        "json": f"'{{\"a\": {number}}}'",
        "year": "'2026'",
        "time": f"'00:00:{abs(number) % 60:02d}'",
        **dict.fromkeys(("date", "datetime", "timestamp"), f"'2026-11-{abs(number) % 28 + 1:02d}'"),
    }
    return others.get(data_type)


def smaller(stage: Stage, lines: list[str], is_wrong: Callable[[Story], bool], tries: int = 80) -> list[str]:
    """Return fewer lines of a story that still have a finding: halves, quarters and so on are left out."""
    size = len(lines) // 2
    while size and tries:
        at = 0
        while at < len(lines) and tries:
            fewer = lines[:at] + lines[at + size :]
            tries -= 1
            if is_wrong(stage.play(fewer)):
                lines = fewer
            else:
                at += size
        size //= 2
    return lines
