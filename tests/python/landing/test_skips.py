"""Skipping on request: by position, by GTID, by single transaction; every skip is recorded."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ingest.binlog import open_binlog
from ingest.binlog.gtid_sets import GtidSet, gtid_union
from ingest.errors import UsageError
from ingest.follow.overview import status
from ingest.landing import IngestOptions, ingest
from ingest.landing.held import SpoolFile, StreamLanding
from ingest.landing.skips import BEFORE_THE_START, LANDED_EARLIER
from ingest.sources.files.directory import find_binlogs
from ingest.warehouse.record import SourceRecord
from tests.support.landing.binlogs import SHOP, SHOP_MARIADB, of_server
from tests.support.landing.stored import segment_rows

FIRST, SECOND = SHOP / "binlog.000001", SHOP / "binlog.000002"
UUID = "5ca1ab1e-0000-4000-8000-0000b1d1003e"


@pytest.fixture
def landing(tmp_path: Path) -> Iterator[StreamLanding]:
    """A landing of source `skips`; its epoch is not open yet."""
    with StreamLanding("skips", tmp_path / "home", IngestOptions(segment_bytes=8_000)) as held:
        yield held


def whole(path: Path, epoch: int = 0) -> SpoolFile:
    """Return a file to its end."""
    return SpoolFile(path, epoch, path.stat().st_size)


def transactions(path: Path) -> list[dict[str, Any]]:
    """Return the transactions of a file from the decoder."""
    batches = [batch for kind, batch in open_binlog(path).batches() if kind == "transactions"]
    rows: list[dict[str, Any]] = pa.Table.from_batches(batches).to_pylist()
    return rows


def landed(landing: StreamLanding) -> list[str]:
    """Return the GTIDs of the landed transactions, in the order of their positions."""
    return [row.partition("'gtid': '")[2].partition("'")[0] for row in segment_rows(landing.home, "transactions")]


def skipped(landing: StreamLanding, path: Path, epoch: int = 0) -> list[tuple[str, str | None]]:
    """Return the reasons for which parts of a file were skipped, and the GTIDs in them."""
    states = landing.record.states[epoch, path.name]
    return [(state.error, state.gtids) for state in states if state.status == "skipped"]


def test_nothing_before_the_position_that_was_asked_for(landing: StreamLanding) -> None:
    here = transactions(SECOND)
    start = here[7]["start_pos"]
    landing.open_epoch({"epoch": 0, "start_file": SECOND.name, "start_pos": start})
    result = landing.land([whole(FIRST), whole(SECOND)])
    assert result.problems == []
    assert landed(landing) == [row["gtid"] for row in here[7:]]
    assert {reason for reason, _ in skipped(landing, FIRST)} == {BEFORE_THE_START}
    assert str(gtid_union(gtids for _, gtids in skipped(landing, SECOND))) == f"{UUID}:57-63"
    # A skipped part is done: it is covered, never landed again, and known after a change of server.
    for path in (FIRST, SECOND):
        assert landing.record.is_landed(0, path.name, path.stat().st_size)
    assert landing.land([whole(FIRST), whole(SECOND)]).files_skipped == 2
    assert str(landing.record.gtids_done()) == f"{UUID}:1-76"
    assert [file.state for file in status("skips", landing.home)[0].files] == ["left out", "landed"]
    assert SourceRecord.load("skips", landing.home).states == landing.record.states


def test_a_start_that_the_file_has_not_reached_yet(landing: StreamLanding) -> None:
    here = transactions(FIRST)
    landing.open_epoch({"epoch": 0, "start_file": FIRST.name, "start_pos": here[30]["start_pos"]})
    for number in (10, 30, 40, 55):
        landing.land([SpoolFile(FIRST, 0, here[number]["end_pos"])])
    assert landed(landing) == [row["gtid"] for row in here[30:]]


def test_a_position_inside_of_a_transaction_is_refused(landing: StreamLanding) -> None:
    here = transactions(FIRST)
    landing.open_epoch({"epoch": 0, "start_file": FIRST.name, "start_pos": here[3]["start_pos"] + 79})
    with pytest.raises(UsageError, match=f"inside the transaction that starts at {here[3]['start_pos']}"):
        landing.land([whole(FIRST)])


def test_nothing_of_a_gtid_set_transaction_by_transaction(landing: StreamLanding) -> None:
    before = f"{UUID}:1-10:12:30-60"
    landing.open_epoch({"epoch": 0, "gtids_before": before})
    assert landing.land([whole(FIRST), whole(SECOND)]).problems == []
    everything = [row["gtid"] for path in (FIRST, SECOND) for row in transactions(path)]
    assert landed(landing) == [gtid for gtid in everything if gtid not in GtidSet.parse(before)]
    left_out = GtidSet()
    for path in (FIRST, SECOND):
        for reason, gtids in skipped(landing, path):
            assert reason == BEFORE_THE_START
            left_out.update(GtidSet.parse(gtids))
        assert landing.record.is_landed(0, path.name, path.stat().st_size)
    assert str(left_out) == before


def test_nothing_of_a_position_of_mariadb(landing: StreamLanding) -> None:
    first, second = (SHOP_MARIADB / name for name in ("binlog.000001", "binlog.000002"))
    landing.open_epoch({"epoch": 0, "gtids_before": "0-1-60"})
    assert landing.land([whole(first), whole(second)]).problems == []
    everything = [row["gtid"] for path in (first, second) for row in transactions(path)]
    assert landed(landing) == everything[60:]


def test_a_file_behind_the_set_is_not_looked_into(landing: StreamLanding) -> None:
    # The file's header lists the preceding GTIDs: none of them occurs in this file or a later one.
    landing.open_epoch({"epoch": 0, "gtids_before": f"{UUID}:1-56"})
    landing.land([whole(SECOND)])
    assert skipped(landing, SECOND) == []
    assert len(landed(landing)) == len(transactions(SECOND))


def test_what_an_earlier_epoch_has_landed_is_not_landed_again(landing: StreamLanding, tmp_path: Path) -> None:
    landing.open_epoch({"epoch": 0, "server_id": 1})
    middle = transactions(SECOND)[4]
    landing.land([whole(FIRST), SpoolFile(SECOND, 0, middle["end_pos"])])
    # The replica logged the same transactions, and continues.
    replica = [tmp_path / "replica.000031", tmp_path / "replica.000032"]
    for path, source in zip(replica, (FIRST, SECOND), strict=True):
        path.write_bytes(of_server(source.read_bytes(), 2))
    done = landing.record.gtids_done()
    assert str(done) == f"{UUID}:1-61"
    landing.open_epoch({"epoch": 1, "server_id": 2, "gtids_before": str(done)})
    assert landing.land([whole(path, 1) for path in replica]).problems == []
    everything = [row["gtid"] for path in (FIRST, SECOND) for row in transactions(path)]
    assert sorted(landed(landing)) == sorted(everything)
    assert {reason for reason, _ in skipped(landing, replica[0], 1)} == {LANDED_EARLIER}


def test_ingest_of_a_source_and_its_replica_lands_each_transaction_once(tmp_path: Path) -> None:
    logs, home = tmp_path / "logs", tmp_path / "home"
    logs.mkdir()
    (logs / "binlog.000001").write_bytes(FIRST.read_bytes())
    (logs / "replica.000001").write_bytes(of_server(FIRST.read_bytes(), 2))
    (logs / "replica.000002").write_bytes(of_server(SECOND.read_bytes(), 2))
    result = ingest("both", find_binlogs(logs), home=home)
    assert (result.problems, result.transactions) == ([], 76)
    record = SourceRecord.load("both", home)
    assert [(row["epoch"], row["gtids_before"]) for row in record.identities] == [(0, None), (1, f"{UUID}:1-56")]
    assert [state.status for state in record.states[1, "replica.000001"]] == ["skipped"]
    again = ingest("both", find_binlogs(logs), home=home)
    assert (again.files_skipped, again.segments) == (3, 0)
