"""Whose log a file is: the flavor follows from the bytes of the format description, never from its version."""

import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from ingest.binlog import SchemaHints, open_binlog, scan_binlog
from ingest.binlog.events.format import read_format
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from tests.python.binlog.test_decoder import everything
from tests.support.binlog import forge
from tests.support.places import FIXTURES

VERSION, VERSION_BYTES = 4 + 19 + 2, 50
OF_MARIADB = ["metadata-full", "old-temporals", "uuid-inet", "checksum-none", "compressed-events", "xa"]
OF_MYSQL = ["metadata-full", "checksum-none", "transaction-payload", "tagged-gtids"]


def renamed(path: Path, version: bytes, folder: Path) -> Path:
    """Copy a file whose server was started with another version."""
    data = bytearray(path.read_bytes())
    data[VERSION : VERSION + VERSION_BYTES] = version.ljust(VERSION_BYTES, b"\0")
    end = 4 + int.from_bytes(data[13:17], "little")
    data[end - 4 : end] = struct.pack("<I", zlib.crc32(bytes(data[4:21]) + b"\0\0" + bytes(data[23 : end - 4])))
    copy = folder / path.name
    copy.write_bytes(data)
    return copy


def all_of(path: Path, hints: SchemaHints | None) -> list[tuple[str, Any]]:
    """Return everything in a file: its batches, its listing, and what a scan finds without decoding rows."""
    scan = scan_binlog(path)
    found = [(scan.format.flavor, scan.format.checksum_algorithm), scan.next_binlog_file, scan.event_counts]
    listed = [event.detail for event in open_binlog(path).events() if event.type_name != "FORMAT_DESCRIPTION"]
    rows = [(kind, batch.to_pylist()) for kind, batch in open_binlog(path, hints=hints).batches()]
    return [("scan", found), ("events", listed), *rows]


@pytest.mark.parametrize("version", [b"8.0.36-shop", b"5.5.60-shop", b"weird", b"10", b""], ids=bytes.decode)
@pytest.mark.parametrize("name", OF_MARIADB)
def test_a_mariadb_that_does_not_say_so(name: str, version: bytes, tmp_path: Path) -> None:
    path = FIXTURES / f"mariadb-{name}.binlog"
    schema = FIXTURES / f"mariadb-{name}-schema"
    hints = SchemaHints.from_columns(read_snapshot_dir(schema).columns) if schema.is_dir() else None
    copy = renamed(path, version, tmp_path)
    assert all_of(copy, hints) == all_of(path, hints)
    assert all_of(copy, None) == all_of(path, None)


@pytest.mark.parametrize("version", [b"11.8.9-MariaDB", b"5.5.60-MariaDB", b"weird"], ids=bytes.decode)
@pytest.mark.parametrize("name", OF_MYSQL)
def test_a_mysql_whose_version_says_mariadb(name: str, version: bytes, tmp_path: Path) -> None:
    path = FIXTURES / f"mysql-{name}.binlog"
    assert all_of(renamed(path, version, tmp_path), None) == all_of(path, None)


@pytest.mark.parametrize(
    ("version", "flavor"),
    [(b"5.1.73-log", "mysql"), (b"5.2.14-MariaDB", "mariadb"), (b"weird", "mysql"), (b"10.11.18-MariaDB", "mysql")],
)
def test_a_server_older_than_checksums(version: bytes, flavor: str, tmp_path: Path) -> None:
    maker = forge.FileMaker(version=b"5.1.73-log", checksum=False)
    maker.data[VERSION : VERSION + VERSION_BYTES] = version.ljust(VERSION_BYTES, b"\0")
    maker.begin()
    maker.commit()
    maker.rotate()
    path = maker.write(tmp_path)
    format = read_format(path)
    assert (format.flavor, format.checksum_algorithm, len(format.post_header_sizes)) == (flavor, None, 27)
    assert scan_binlog(path).next_binlog_file == "binlog.000002"


@pytest.mark.parametrize("version", [b"8.0.40", b"weird"])
def test_a_wrong_checksum_does_not_make_a_server_older(version: bytes, tmp_path: Path) -> None:
    maker = forge.FileMaker(version=version)
    maker.data[-1] ^= 1
    maker.begin()
    maker.commit()
    path = maker.write(tmp_path)
    assert read_format(path).checksum_algorithm == "CRC32"
    assert scan_binlog(path).defect is not None


def test_a_type_code_of_aurora_does_not_make_it_mariadb(tmp_path: Path) -> None:
    """Aurora's format description lists 100 types."""
    maker = forge.FileMaker(version=b"5.7.12-log", post_headers=forge.POST_HEADERS + bytes(59))
    maker.begin()
    maker.commit()
    path = maker.write(tmp_path)
    assert read_format(path).flavor == "mysql" and len(everything(path)["transactions"]) == 1
