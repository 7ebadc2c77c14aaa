"""Values are decoded with the schema at their position, at the first landing.

Every kind of server runs the same statements, which change labels, signs, character sets and the order of columns
between row changes. MySQL with FULL metadata logs everything that values depend on: its values are the expected ones.
The others have one earlier snapshot, and are landed in every possible way.
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ingest.binlog import open_binlog
from ingest.follow.follower import Follower, FollowOptions, Start
from ingest.landing import IngestOptions, ingest, land_snapshot
from ingest.landing.hints_of_files import hints_by_file
from ingest.sources.files.directory import find_binlogs
from ingest.sources.servers.address import ServerAddress
from ingest.sources.snapshots.snapshot import SchemaSnapshot
from ingest.warehouse.files import data_files, read_rows, segment_folder
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.segments import FIRST_EVENT
from ingest.warehouse.tables import ROW_EVENTS, TABLE_MAPS
from tests.servers import ALL_DISTRIBUTIONS, Server
from tests.servers.random_values import RandomValues
from tests.support.depth import is_full
from tests.support.landing.binlogs import snapshot_of

pytestmark = [
    *(pytest.mark.mysql, pytest.mark.mariadb, pytest.mark.mysql56, pytest.mark.mariadb118),
    pytest.mark.slow,
]

SEED, PARTS, STEPS = 20261122, 4, 25
MINIMAL = "--binlog-row-metadata=MINIMAL"
SETTINGS: dict[str, tuple[str, list[str]]] = {
    "mysql": ("mysql", [MINIMAL]),
    "mysql56": ("mysql-5.6", []),
    "mariadb": ("mariadb", []),
    "mariadb_minimal": ("mariadb", [MINIMAL]),
    "mariadb118": ("mariadb-11.8", []),
    "mariadb118_minimal": ("mariadb-11.8", [MINIMAL]),
}
if not is_full():
    # The same code of MariaDB writes the metadata of both versions.
    del SETTINGS["mariadb_minimal"], SETTINGS["mariadb118"]
Change = tuple[str, str, str, list[str | None], list[str | None]]


@dataclass
class Log:
    """A server's files, and the schema before them."""

    folder: Path
    names: list[str] = field(default_factory=list)
    snapshot: SchemaSnapshot | None = None


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home for all logs, each of which is a source."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> list[Change]:
    """Return the row changes of a server that logs full metadata."""
    log = written(tmp_path_factory.mktemp("truth"), "mysql", ["--binlog-row-metadata=FULL"])
    found: list[Change] = []
    for name in log.names:
        maps: set[str] = set()
        for kind, batch in open_binlog(log.folder / name).batches():
            if kind == "table_maps":
                maps |= {one["table_map_id"] for one in batch.to_pylist() if one["unknown_hints"]}
            elif kind == "row_events":
                found += changes_in(batch.to_pylist())
        assert not maps
    return found


@pytest.fixture(scope="module", params=[*SETTINGS])
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, home: Path) -> Log:
    """A server's log; a follower landed it with a pause after each part, under the name of its setting."""
    return written(tmp_path_factory.mktemp(request.param), *SETTINGS[request.param], home=home, source=request.param)


def written(folder: Path, kind: str, options: list[str], home: Path | None = None, source: str = "") -> Log:
    """Let a server run the statements, with one file for each part."""
    story = RandomValues(SEED)
    log = Log(folder / "files")
    with ALL_DISTRIBUTIONS[kind].start(folder / "server", options) as server:
        run(server, story.begin())
        server.flush()
        first = len(server.binlogs()) - 1
        log.snapshot = snapshot_of(server.host, server.port)
        if home is not None:
            follow(server, source, home, Start(from_now=True))
        for _ in range(PARTS):
            for step in story.steps(STEPS):
                run(server, step)
            server.flush()
            if home is not None:
                follow(server, source, home, Start())
        log.folder.mkdir()
        for path in server.binlogs()[first:-1]:
            shutil.copy(path, log.folder)
            log.names.append(path.name)
    return log


def run(server: Server, statements: Sequence[str]) -> None:
    server.execute("set sql_mode = ''", *statements)


def follow(server: Server, source: str, home: Path, start: Start) -> None:
    """Catch up with a server, as `binloom follow --once` does."""
    address = ServerAddress(server.host, server.port, "root")
    Follower(source, address, FollowOptions(once=True, start=start), home, Silent()).run()


class Silent:
    """Receives the messages of a follower and ignores them."""

    def say(self, text: str) -> None: ...
    def connected(self) -> None: ...
    def disconnected(self) -> None: ...
    def received(self, size: int) -> None: ...
    def landed(self, result: Any, spool: Any, landing: Any) -> None: ...


def changes_in(rows: Sequence[dict[str, Any]]) -> Iterator[Change]:
    for row in rows:
        yield (*(row[name] for name in ("schema_name", "table_name", "event_type", "before_values", "after_values")),)


def landed(home: Path, source: str) -> list[Change]:
    """Return the row changes of a source in log order; assert that the interpretation of every value is known."""
    record = SourceRecord.load(source, home)
    uncertain = {row["table_map_id"] for row in read_rows(TABLE_MAPS, home, source_id=source) if row["unknown_hints"]}
    found: list[Change] = []
    for _, states in sorted(record.states.items()):
        for state in states:
            if (state.status, state.segment_start) == ("skipped", FIRST_EVENT):
                continue  # These rows precede the start of following.
            assert state.status == "completed"
            for path in data_files(segment_folder(ROW_EVENTS, state.segment, home)):
                rows = read_part_rows(path)
                assert not uncertain & {row["table_map_id"] for row in rows}
                found += changes_in(sorted(rows, key=lambda row: (row["start_pos"], row["row_ordinal"])))
    return found


def read_part_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a Parquet file."""
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.ParquetFile(path).read().to_pylist()
    return rows


def differing(found: list[Change], truth: list[Change]) -> list[tuple[int, Change, Change]]:
    """Return the first few places at which two series of row changes differ."""
    assert len(found) == len(truth)
    pairs = enumerate(zip(found, truth, strict=True))
    return [(number, mine, right) for number, (mine, right) in pairs if mine != right][:3]


def land(log: Log, home: Path, source: str, *groups: list[str], segment_bytes: int = 1 << 27) -> None:
    """Land the files of a log, one group after another, after its snapshot."""
    assert log.snapshot is not None
    land_snapshot(source, log.snapshot, home)
    for names in groups:
        options = IngestOptions(segment_bytes=segment_bytes)
        assert ingest(source, find_binlogs(log.folder, names), options, home=home).exit_code == 0


def test_the_statements_change_how_values_read(truth: list[Change]) -> None:
    values = [value for change in truth for value in (*change[3], *change[4]) if value]
    assert len(truth) > PARTS * STEPS
    assert any("ä" in value for value in values) and any(value.startswith("0x") for value in values)
    assert any(int(value) > 1 << 63 for value in values if value.isdigit())


def test_rows_between_statements(mysql_server: Server) -> None:
    mysql_server.execute(
        "create database between_statements", "create table between_statements.t (id int primary key, e enum('x','y'))"
    )
    mysql_server.flush()
    snapshot = snapshot_of(mysql_server.host, mysql_server.port)
    mysql_server.execute(
        "use between_statements",
        "insert into t values (1, 'y')",
        "alter table t modify e enum('ä','x','y','ü')",
        "insert into t values (2, 'ü')",
        "alter table t add s set('p','q') after id",
        "insert into t values (3, 'p,q', 'ä')",
        "create table u (id int primary key, e enum('new'))",
        "insert into u values (4, 'new')",
        "alter table u add f enum('one','two')",
        "insert into u values (5, 'new', 'two')",
    )
    path = mysql_server.flush()
    hints = hints_by_file(snapshot, [path])[path]
    rows = [row for batch in open_binlog(path, hints=hints).row_batches() for row in batch.to_pylist()]
    assert [row["after_values"] for row in rows] == [
        *(["1", "y"], ["2", "ü"], ["3", "p,q", "ä"]),
        *(["4", "new"], ["5", "new", "two"]),
    ]


def test_a_changed_type_hides_the_values_of_its_own_column(mariadb_server: Server) -> None:
    table = "id int unsigned primary key, e enum('x','ü'), n int, u uuid"
    mariadb_server.execute("create database changed_types", f"create table changed_types.t ({table}) charset latin1")
    mariadb_server.flush()
    mariadb_server.execute(
        "use changed_types",
        "insert into t values (4000000000, 'ü', 1, '12345678-1234-1234-1234-123456789012')",
        "alter table t modify n bigint unsigned",
        "insert into t values (4000000001, 'x', 9223372036854775808, null)",
    )
    path = mariadb_server.flush()
    hints = hints_by_file(snapshot_of(mariadb_server.host, mariadb_server.port), [path])[path]
    decoded = list(open_binlog(path, hints=hints).batches())
    rows = [row["after_values"] for kind, batch in decoded if kind == "row_events" for row in batch.to_pylist()]
    assert rows == [
        ["4000000000", "ü", "1", "12345678-1234-1234-1234-123456789012"],
        ["4000000001", "x", "9223372036854775808", None],
    ]
    maps = [one["unknown_hints"] for kind, batch in decoded if kind == "table_maps" for one in batch.to_pylist()]
    assert maps == [[{"ordinal": 2, "hint": "sign"}], None]


def test_in_one_go(log: Log, home: Path, truth: list[Change], request: Any) -> None:
    source = f"{request.node.callspec.id}_whole"
    land(log, home, source, log.names)
    assert differing(landed(home, source), truth) == []


def test_one_file_after_another(log: Log, home: Path, truth: list[Change], request: Any) -> None:
    source = f"{request.node.callspec.id}_files"
    land(log, home, source, *([name] for name in log.names))
    assert differing(landed(home, source), truth) == []


def test_out_of_order(log: Log, home: Path, truth: list[Change], request: Any) -> None:
    source = f"{request.node.callspec.id}_backwards"
    land(log, home, source, *([name] for name in reversed(log.names)))
    assert differing(landed(home, source), truth) == []


def test_in_segments_side_by_side(log: Log, home: Path, truth: list[Change], request: Any) -> None:
    source = f"{request.node.callspec.id}_segments"
    land(log, home, source, log.names, segment_bytes=6000)
    record = SourceRecord.load(source, home)
    assert sum(map(len, record.states.values())) > 2 * PARTS
    assert differing(landed(home, source), truth) == []


def test_followed_with_pauses(log: Log, home: Path, truth: list[Change], request: Any) -> None:
    assert differing(landed(home, request.node.callspec.id), truth) == []


def test_decoded_with_a_snapshot(log: Log, truth: list[Change]) -> None:
    assert log.snapshot is not None
    paths = [log.folder / name for name in log.names]
    hints = hints_by_file(log.snapshot, paths)
    found = [
        change
        for path in paths
        for batch in open_binlog(path, hints=hints[path]).row_batches()
        for change in changes_in(batch.to_pylist())
    ]
    assert differing(found, truth) == []


def test_what_a_hole_hides_is_not_known_until_it_is_filled(
    log: Log, home: Path, truth: list[Change], request: Any, tmp_path: Path
) -> None:
    assert log.snapshot is not None
    source = f"{request.node.callspec.id}_hole"
    alone = tmp_path / "alone"
    alone.mkdir()
    for first, second in pairwise(log.names):
        if second == log.names[-1]:
            shutil.copy(log.folder / second, alone)
            shutil.copy(log.folder / log.names[0], alone)
            assert first not in {path.name for path in alone.iterdir()}
    land_snapshot(source, log.snapshot, home)
    assert ingest(source, find_binlogs(alone), home=home).exit_code == 0
    uncertain = [row for row in read_rows(TABLE_MAPS, home, source_id=source) if row["unknown_hints"]]
    assert uncertain
    # The files in between arrive: files after them that were landed before are landed again automatically.
    assert ingest(source, find_binlogs(log.folder, log.names), home=home).exit_code == 0
    assert differing(landed(home, source), truth) == []
