"""Types that not every server has, and those that only a snapshot tells: as the server logs them, against SELECT."""

import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.python.binlog import recordings, workload
from tests.python.binlog.recordings import MATRIX
from tests.python.binlog.test_against_servers import assert_final_rows
from tests.python.binlog.workload import Column, Table
from tests.servers import OTHER_VERSIONS, Server


@pytest.fixture(scope="module")
def mariadb_11_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    distribution = OTHER_VERSIONS["mariadb-11.8"]
    if not distribution.available():
        pytest.skip(distribution.why_not())
    with distribution.start(tmp_path_factory.mktemp("mariadb-11.8")) as server:
        yield server


@pytest.fixture(scope="module", params=["mariadb_server", "mariadb_11_server"])
def either_mariadb(request: pytest.FixtureRequest) -> Server:
    server: Server = request.getfixturevalue(request.param)
    return server


def assert_decodes(server: Server, tables: list[Table], directory: Path) -> None:
    """Under every setting of row metadata, the changes replayed are the rows that the server has."""
    for setting in MATRIX:
        if setting.flavor == server.flavor and setting.checksum == "CRC32":
            recording = recordings.record(server, setting, tables, directory / str(setting))
            assert_final_rows(recording, recording.changes())


def column(name: str, ddl: str, values: list[str]) -> Column:
    return Column(name, ddl, "text", (*(f"'{value}'" for value in values), "null"))


def uuids(numbers: random.Random) -> list[str]:
    """UUIDs of every version and variant, of which MariaDB keeps some with their parts swapped."""
    values = ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"]
    values += [f"123e4567-e89b-{version:x}2d3-a456-426614174000" for version in range(16)]
    values += [f"123e4567-e89b-12d3-{variant:x}456-426614174000" for variant in range(16)]
    return values + [str(uuid.UUID(int=numbers.getrandbits(128), version=4)) for _ in range(5)]


def addresses(numbers: random.Random) -> list[str]:
    """Addresses with runs of zero groups of every length at every place, and those of version 4 in them."""
    values = ["::", "::1", "::ffff:1.2.3.4", "::1.2.3.4", "::ffff:0:1.2.3.4", "::ffff:0.0.0.0", "::0.1.0.0", "1::"]
    for first in range(8):
        for length in range(1, 9 - first):
            groups = [f"{numbers.randrange(1, 1 << numbers.choice((4, 8, 12, 16))):x}" for _ in range(8)]
            groups[first : first + length] = ["0"] * length
            values.append(":".join(groups))
    values += [":".join(numbers.choice(("0", "0", "1", "ab0")) for _ in range(8)) for _ in range(40)]
    return values


def test_uuid_and_internet_addresses(either_mariadb: Server, tmp_path: Path) -> None:
    numbers = random.Random(2)
    version_4 = ["0.0.0.0", "1.0.0.0", "255.255.255.255", "10.20.0.0", "127.0.0.1", "0.0.0.1"]
    table = Table(
        "fixed_binaries",
        (
            column("a_uuid", "uuid", uuids(numbers)),
            column("an_inet6", "inet6", addresses(numbers)),
            column("an_inet4", "inet4", version_4),
            column("behind", "varchar(9) character set utf8mb4", ["é"]),
        ),
    )
    assert_decodes(either_mariadb, [table], tmp_path)


@contextmanager
def temporals_of_mariadb_5_3(server: Server) -> Iterator[None]:
    """Let the server make temporal columns in the format from before it had MySQL 5.6's."""
    server.execute("set global mysql56_temporal_format = off")
    try:
        yield
    finally:
        server.execute("set global mysql56_temporal_format = on")


def test_temporal_types_of_mariadb_5_3(either_mariadb: Server, tmp_path: Path) -> None:
    tables = [table for table in workload.tables("mariadb", [], seed=7) if table.name == "temporals"]
    with temporals_of_mariadb_5_3(either_mariadb):
        assert_decodes(either_mariadb, tables, tmp_path)


def test_timestamps_of_mariadb_11_go_to_2106(mariadb_11_server: Server, tmp_path: Path) -> None:
    columns = []
    for digits in (0, 1, 3, 6):
        fraction = "." + "9" * digits if digits else ""
        moments = [
            "2038-01-19 03:14:07",
            "2038-01-19 03:14:08",
            f"2106-02-07 06:28:15{fraction}",
            "2100-02-28 23:59:59",
        ]
        columns.append(Column(f"t{digits}", f"timestamp({digits}) null", "timestamp", tuple(f"'{m}'" for m in moments)))
    assert_decodes(mariadb_11_server, [Table("late", tuple(columns))], tmp_path)


def test_compressed_columns(either_mariadb: Server, tmp_path: Path) -> None:
    columns = []
    samples = {"utf8mb4": "Größe €🎁, ", "utf16": "Größe €🎁, ", "latin1": "Größe €, ", "sjis": "日本語ｶﾅ, "}
    for charset, sample in samples.items():
        for kind, length in (("tinytext", 50), ("text", 15000), ("longtext", 60000), ("varchar(1500)", 1500)):
            texts = ["", "a", sample, (sample * 10000)[:length]]
            literals = tuple(workload.literal(text) for text in texts)
            ddl = f"{kind} compressed character set {charset}"
            columns.append(Column(f"{kind[:7]}_{charset}", ddl, "text", (*literals, "null"), charset=charset))
    blobs = [b"", b"\0", bytes(range(256)) * 200, b"z" * 60000]
    for kind, length in (("tinyblob", 250), ("mediumblob", 60000), ("varbinary(254)", 254), ("varbinary(255)", 255)):
        literals = tuple(workload.binary(value[:length]) for value in blobs)
        columns.append(Column(kind, f"{kind} compressed", "binary", (*literals, "null")))
    assert_decodes(either_mariadb, [Table("compressed", tuple(columns))], tmp_path)


GEOMETRIES = [
    ("geometry", ["POINT(1 2)", "LINESTRING(0 0,1e-300 1e300)", "GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))"]),
    ("point", ["POINT(-0 0.1)", "POINT(1.7976931348623157e308 5e-324)"]),
    ("linestring", ["LINESTRING(" + ",".join(f"{i} {i}" for i in range(5000)) + ")"]),
    ("polygon", ["POLYGON((0 0,10 0,10 10,0 10,0 0),(1 1,2 1,2 2,1 1))"]),
    ("multipoint", ["MULTIPOINT(0 0,1 1)"]),
    ("multilinestring", ["MULTILINESTRING((0 0,1 1),(2 2,3 3))"]),
    ("multipolygon", ["MULTIPOLYGON(((0 0,1 0,1 1,0 0)))"]),
    ("geometrycollection", ["GEOMETRYCOLLECTION(POINT(1 1))"]),
]


@pytest.mark.parametrize("server_name", ["mysql_server", "mariadb_server", "mariadb_11_server"])
def test_geometries_are_their_reference_system_and_well_known_binary(
    request: pytest.FixtureRequest, server_name: str, tmp_path: Path
) -> None:
    columns = []
    for kind, texts in GEOMETRIES:
        literals = [f"st_geomfromtext('{text}', {system})" for text in texts for system in (0, 3857)]
        columns.append(Column(f"a_{kind}", kind, "binary", (*literals, "null")))
    assert_decodes(request.getfixturevalue(server_name), [Table("geometries", tuple(columns))], tmp_path)


def test_vectors_of_mysql(mysql_server: Server, tmp_path: Path) -> None:
    texts = ["[1]", "[1.5,-2.25,3e38]", f"[{','.join('0.1' for _ in range(2048))}]"]
    literals = (*(f"string_to_vector('{text}')" for text in texts), "null")
    table = Table("vectors", (Column("v", "vector(2048)", "binary", literals),))
    assert_decodes(mysql_server, [table], tmp_path)


def test_vectors_of_mariadb(mariadb_11_server: Server, tmp_path: Path) -> None:
    columns = []
    for dimensions in (1, 3, 300):
        texts = [f"[{','.join(number for _ in range(dimensions))}]" for number in ("0", "0.1", "-3e38")]
        literals = (*(f"vec_fromtext('{text}')" for text in texts), "null")
        columns.append(Column(f"v{dimensions}", f"vector({dimensions})", "binary", literals))
    assert_decodes(mariadb_11_server, [Table("vectors", tuple(columns))], tmp_path)
