"""The recorded shop with masks on its customers, and a search for values that must not be anywhere."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest.binlog import open_binlog
from ingest.binlog.events.hints import SchemaHints
from ingest.landing.held import SpoolFile, StreamLanding
from ingest.landing.options import IngestOptions, IngestResult
from ingest.landing.snapshots import land_snapshot
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from tests.support.landing.binlogs import SHOP

KEY = "0123456789abcdef0123456789abcdef"
MASKS = """\
key_variable: SHOP_MASK_KEY
tags:
  contact: hash
  name: {method: partial, keep_first: 1, keep_last: 0}
  where: null
  birth: drop
  free text: {method: "null"}
rules:
  - {columns: shop.customers.email, tag: contact}
  - {columns: "*.customers.full_name", tag: name}
  - {columns: ["shop.*.CITY", shop.customers.balance], tag: where}
  - {columns: shop.customers.birthday, tag: birth}
  - {columns: shop.orders.note, tag: free text, source: "shop*"}
"""
COLUMNS = {"customers": ("email", "full_name", "city", "birthday", "balance"), "orders": ("note",)}
"""The columns that the masks change."""

FILES = ("binlog.000001", "binlog.000002")


def set_masks(home: Path, monkeypatch: pytest.MonkeyPatch, masks: str = MASKS) -> None:
    """Put masks into a home, and their key into the environment."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "masks.yml").write_text(masks)
    monkeypatch.setenv("SHOP_MASK_KEY", KEY)


def land_shop(
    home: Path, sample: Path = SHOP, *, has_snapshot: bool = True, source: str = "shop", segment_bytes: int = 20_000
) -> IngestResult:
    """Land a sample without Spark."""
    if has_snapshot:
        land_snapshot(source, read_snapshot_dir(sample / "schema"), home)
    paths = [sample / name for name in sample_files(sample)]
    files = [SpoolFile(path, 0, path.stat().st_size, is_closed=True) for path in paths]
    first = open_binlog(files[0].path).format
    with StreamLanding(source, home, IngestOptions(segment_bytes=segment_bytes)) as landing:
        if (0, files[0].path.name) not in landing.record.files:
            server = {"flavor": first.flavor, "server_version": first.server_version}
            landing.open_epoch({"epoch": 0, "server_id": 1, **server})
        return landing.land(files)


def sample_files(sample: Path) -> list[str]:
    """Return the names of a sample's files."""
    return sorted(path.name for path in sample.iterdir() if path.suffix[1:].isdigit())


def original_rows(sample: Path = SHOP) -> Iterator[dict[str, object]]:
    """Yield the row events of a sample, with the column names of their tables."""
    hints = SchemaHints.from_columns(read_snapshot_dir(sample / "schema").columns)
    for name in sample_files(sample):
        log = open_binlog(sample / name, hints=hints)
        for kind, batch in log.batches():
            if kind == "row_events":
                for row in batch.to_pylist():
                    yield {**row, "binlog_file": name, "names": log.column_names(row["table_map_id"])}


def secrets(sample: Path = SHOP) -> set[str]:
    """Return the values of masked columns that are long enough to occur nowhere by chance."""
    found: set[str] = set()
    for row in original_rows(sample):
        names = row["names"]
        assert isinstance(names, tuple)
        for column in COLUMNS.get(str(row["table_name"]), ()):
            place = names.index(column)
            values = (row["before_values"], row["after_values"])
            found |= {image[place] for image in values if isinstance(image, list) and image[place] is not None}
    return {text for text in found if len(text) > 5}


def texts_of(path: Path) -> str:
    """Return everything in a file as text; Parquet is decompressed."""
    if path.suffix != ".parquet":
        return path.read_bytes().decode("utf-8", "replace")
    file = pq.ParquetFile(path)
    return "\n".join(_texts(column) for column in file.read().columns) + str(file.metadata.metadata)


def _texts(column: pa.ChunkedArray) -> str:
    return "\n".join(map(str, column.to_pylist()))


def places_of(values: set[str], home: Path) -> list[str]:
    """Return the files of a home that contain one of some values, each with the value."""
    found = []
    for path in sorted(home.rglob("*")):
        if path.is_file() and not path.is_symlink():
            text = texts_of(path)
            found += [f"{path.relative_to(home)}: {value}" for value in values if value in text]
    return found
