"""The home of an older commit that `tools/record_older_warehouse.py` records, and the server that it follows."""

import tarfile
from pathlib import Path
from typing import Final

from tests.servers import Server
from tests.support.places import FIXTURES

ARCHIVE: Final = FIXTURES / "older-warehouse.tar.xz"
PLACE: Final = Path("/tmp/binloom-older-warehouse")
SERVER_OPTIONS: Final = ("--binlog-format=ROW",)
LANDED, FOLLOWED = "landed", "followed"
SAMPLE, FIRST_FILE = "shop-mysql", "binlog.000001"


def unpack(folder: Path) -> Path:
    """Unpack the archive into a folder; return the home. Spark needs it at `PLACE`."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "home"


def run(server: Server, text: str) -> None:
    """Run statements, one per line, in one session."""
    with server.connect() as connection, connection.cursor() as cursor:
        for line in text.strip().splitlines():
            cursor.execute(line.strip())
