"""Times in a log are untrusted numbers: whatever they are, everything else of the file is shown."""

import struct
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ingest.binlog import open_binlog, scan_binlog
from ingest.binlog.events.moments import moment, moment_of_seconds
from tests.python.binlog.test_decoder import everything
from tests.support.binlog.forge import TIMESTAMP, FileMaker
from tests.support.binlog.hostile import FLAGS, NUMBER, SOURCE, TAG, varlen

LATEST = 253_402_300_799_999_999
END_OF_9999 = datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)
HEADER = datetime.fromtimestamp(TIMESTAMP, UTC)


def times(path: Path) -> tuple[Any, ...]:
    (transaction,) = everything(path)["transactions"]
    return transaction["committed_at"], transaction["original_committed_at"]


@pytest.mark.parametrize("micros", [0, 1, LATEST, LATEST + 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_commit_times_of_a_tagged_gtid(micros: int, tmp_path: Path) -> None:
    maker = FileMaker()
    rest = [(field, varlen(2)) for field in (8, 9, 11)]
    fields = [FLAGS, SOURCE, NUMBER, TAG, (4, varlen(2)), (5, varlen(4)), (6, varlen(micros)), *rest]
    message = b"".join(varlen(number) + value for number, value in fields)
    # Version, size of all, last field that must be understood: one byte each.
    maker.event(42, varlen(1) + varlen(len(message) + 3) + varlen(0) + message)
    maker.begin()
    maker.commit()
    path = maker.write(tmp_path)
    known = {1: datetime(1970, 1, 1, microsecond=1, tzinfo=UTC), LATEST: END_OF_9999}.get(micros)
    # Without a commit time, a transaction ends at the time of its last event, as in logs of older servers.
    assert times(path) == (known or HEADER, known)
    (gtid,) = (event.detail for event in open_binlog(path).events() if event.type_code == 42)
    assert gtid["gtid"].endswith(":7") and gtid["immediate_commit_at"] == gtid["original_commit_at"] == known


@pytest.mark.parametrize("micros", [0, 1, (1 << 55) - 1])
def test_commit_times_of_a_gtid(micros: int, tmp_path: Path) -> None:
    maker = FileMaker()
    two = struct.pack("<Q", micros | 1 << 55)[:7] + struct.pack("<Q", (1 << 55) - 1)[:7]
    maker.event(33, b"\1" + bytes(range(16)) + struct.pack("<QBQQ", 7, 2, 0, 1) + two + b"\xfc\0\1")
    maker.begin()
    maker.commit()
    path = maker.write(tmp_path)
    assert times(path) == (moment(micros) or HEADER, moment((1 << 55) - 1))
    (gtid,) = (event.detail for event in open_binlog(path).events() if event.type_code == 33)
    assert gtid["immediate_commit_at"] == moment(micros)


def test_the_latest_times_of_headers(tmp_path: Path) -> None:
    maker = FileMaker(checksum=False)
    for add in (maker.begin, maker.commit, maker.rotate):
        at = add()
        maker.data[at : at + 4] = b"\xff" * 4
    scan = scan_binlog(maker.write(tmp_path))
    assert scan.last_event_at == scan.rotated_at == moment_of_seconds(0xFFFFFFFF)
