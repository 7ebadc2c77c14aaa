"""Checks of `masks.yml`: whether it can be used, and whether landed rows have the masks that it gives now."""

from collections.abc import Iterator
from pathlib import Path

from binloom.doctor.findings import Finding
from ingest.errors import BinloomError
from ingest.masking.rules import masks_file, read_masks, record_of
from ingest.warehouse.files import read_rows
from ingest.warehouse.home import binloom_home
from ingest.warehouse.masks import landed_masks, masks_of
from ingest.warehouse.tables import SOURCES

_ANY_SOURCE = ""


def check_masks() -> Iterator[Finding]:
    """Check the file with the masks and its key, for each landed source."""
    home = binloom_home().absolute()
    try:
        path = masks_file(None, home)
        if path is not None:
            read_masks(path, home, _ANY_SOURCE)
        for source in sorted({row["source_id"] for row in read_rows(SOURCES, home, ["source_id"])}):
            yield from _of_source(source, home)
    except BinloomError as error:
        yield Finding.of_error("masks", error)
        return
    message = "No file masks columns; all values are landed." if path is None else f"{path} can be used."
    yield Finding("masks", "good", message)


def _of_source(source: str, home: Path) -> Iterator[Finding]:
    masks = masks_of(source, home)
    differing = []
    for (schema, table), columns in landed_masks(source, home).items():
        names = sorted(columns)
        now = record_of(masks.columns_of(schema, table, names), masks.key) if masks is not None else []
        fingerprints = {one["column_name"]: one["fingerprint"] for one in now}
        differing += [
            f"{schema}.{table}.{name}"
            for name in names
            if {one["fingerprint"] for one in columns[name]} != {fingerprints.get(name)}
        ]
    if differing:
        yield Finding(
            "masks",
            "warning",
            f"Source {source} has rows with other masks than its file gives now, in {', '.join(differing)}. Such rows"
            " stay as they are. To mask them in the same way, land the binlogs under another --source.",
        )
