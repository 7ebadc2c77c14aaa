"""A truncated file of the home is reported in one sentence, and no table silently loses rows."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest.errors import StoreError
from ingest.follow.checkpoint import CHECKPOINT, Checkpoint
from ingest.follow.overview import status
from ingest.follow.spool import Spool
from ingest.landing.compact import compact_closed_files
from ingest.landing.held import SpoolFile, StreamLanding
from ingest.landing.options import IngestOptions
from ingest.landing.schema_history import SchemaHistory
from ingest.quality.proofs import read_proofs
from ingest.warehouse.files import BUILD_ANEW, LAND_ANEW, read_table
from ingest.warehouse.home import raw_table_dir, warehouse_dir
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.tables import RAW_TABLES
from tests.support.landing.binlogs import SHOP, transaction_ends
from tests.support.landing.followed import FILES, FollowedShop

SOURCE = "shop"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A followed shop, landed in small segments; one file of each table."""
    from ingest.landing import land_snapshot
    from ingest.sources.snapshots.snapshot_files import read_snapshot_dir

    home = tmp_path_factory.mktemp("whole") / "home"
    shop = FollowedShop(SHOP, SOURCE, home)
    land_snapshot(SOURCE, read_snapshot_dir(SHOP / "schema"), home)
    with StreamLanding(SOURCE, home, IngestOptions(segment_bytes=20_000)) as landing:
        landing.open_epoch({"epoch": 0, "server_id": 1, "flavor": "mysql"})
        landing.land([SpoolFile(shop.spool.path(0, name), 0, (SHOP / name).stat().st_size) for name in FILES])
    return home


@pytest.fixture
def home(whole: Path, tmp_path: Path) -> Path:
    """A copy of the home to damage."""
    return Path(shutil.copytree(whole, tmp_path / "home"))


def compact(home: Path) -> None:
    with StreamLanding(SOURCE, home) as landing:
        compact_closed_files(landing)


def history(home: Path) -> None:
    SchemaHistory.load(SourceRecord.load(SOURCE, home), home).hints(0)


READERS: dict[str, Callable[[Path], object]] = {
    **dict.fromkeys(("sources", "binlog_files", "segments"), lambda home: SourceRecord.load(SOURCE, home)),
    **dict.fromkeys(("schema_snapshots", "schema_columns"), history),
    **dict.fromkeys(("row_events", "transactions", "statements", "ddl_actions"), compact),
    "table_maps": lambda home: read_table(RAW_TABLES["table_maps"], home, source_id=SOURCE),
}


@pytest.mark.parametrize("part", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("table", READERS)
def test_a_cut_file_of_a_raw_table_is_named(table: str, part: float, home: Path) -> None:
    path = random.Random(table).choice(sorted(raw_table_dir(table, home).rglob("*.parquet")))
    content = path.read_bytes()
    # Truncate to nothing, anywhere, and by a single byte.
    path.write_bytes(content[: int((len(content) - 1) * part)])
    with pytest.raises(StoreError, match="truncated or damaged") as raised:
        READERS[table](home)
    assert raised.value.path == str(path)
    assert str(raised.value).endswith(LAND_ANEW)
    assert "\n" not in str(raised.value)
    # The attempt damaged nothing.
    path.write_bytes(content)
    READERS[table](home)


def test_rows_whose_file_is_missing_are_not_compacted_away(home: Path) -> None:
    path = sorted(raw_table_dir("row_events", home).rglob("*.parquet"))[1]
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(StoreError, match=r"Table row_events has \d+ rows of binlog\.000001 .* a file is missing"):
        compact(home)
    path.write_bytes(content)
    compact(home)


@pytest.mark.parametrize("model", ["proofs", "quarantined_row_events"])
def test_a_cut_file_of_a_mart_is_named(model: str, home: Path) -> None:
    folder = warehouse_dir(home) / "binloom.db" / model
    folder.mkdir(parents=True)
    (folder / "part-0.parquet").write_bytes(b"PAR1")
    with pytest.raises(StoreError, match="truncated or damaged") as raised:
        read_proofs(home=home) if model == "proofs" else status(home=home)
    assert str(raised.value).endswith(BUILD_ANEW)


def test_a_cut_checkpoint_is_named(home: Path) -> None:
    path = Spool(SOURCE, home).folder / CHECKPOINT
    content = path.read_text().rstrip()
    for size in (0, 1, len(content) // 2, len(content) - 1):
        path.write_text(content[:size])
        for read in (lambda: Checkpoint.read(path.parent), lambda: status(home=home), lambda: Spool(SOURCE, home)):
            with pytest.raises(StoreError, match=r"checkpoint\.json cannot be read"):
                read()


def test_a_cut_file_of_the_spool_is_named_and_not_filled_up(home: Path) -> None:
    spool = Spool(SOURCE, home)
    path = spool.path(0, FILES[1])
    size = transaction_ends(SHOP / FILES[1])[0]
    with path.open("r+b") as file:
        file.truncate(size)
    with pytest.raises(StoreError, match=rf"{FILES[1]} has {size} bytes, but \d+ were received.* Delete the file"):
        spool.drop_unsynced()
    assert path.stat().st_size == size
