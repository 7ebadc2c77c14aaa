"""Checks of the file with masks: whether it can be used, and whether a source has lost it."""

from collections.abc import Iterator

from binloom.doctor.findings import Finding
from ingest.errors import BinloomError
from ingest.masking.rules import masks_file
from ingest.warehouse.files import read_rows
from ingest.warehouse.home import binloom_home
from ingest.warehouse.masks import masks_of
from ingest.warehouse.tables import SOURCES


def check_masks() -> Iterator[Finding]:
    """Read the masks as the next landing of each source would. Without masks, there is nothing to check."""
    home = binloom_home()
    path = masks_file(None, home)
    try:
        sources = sorted({row["source_id"] for row in read_rows(SOURCES, home, ["source_id"])})
        # All rules are read, also those of sources that are not landed yet.
        masked = [name for name in sources or [""] if masks_of(name, home) is not None]
    except BinloomError as error:
        # Without a file, the next command may give one with --masks.
        yield Finding("masks", "warning" if path is None else "error", str(error))
        return
    if path is not None:
        concerned = f"sources {', '.join(masked)}" if masked and sources else "no source that is landed yet"
        yield Finding("masks", "good", f"{path} can be used, and concerns {concerned}.")
