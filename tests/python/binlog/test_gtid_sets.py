"""GTID sets: text form, membership, difference."""

import random

import pyarrow as pa
import pytest

from ingest.binlog.gtid_sets import GtidSet, gtid_union
from ingest.errors import UsageError

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


@pytest.mark.parametrize(
    ("gtids", "expected"),
    [
        (["a:1", "a:2", "a:3"], "a:1-3"),
        (["a:3", "a:1", "a:2", "a:9"], "a:1-3:9"),
        (["a:1", "a:tag:1", "b:7", "a:early:5", "a:2", "a:tag:2"], "a:1-2:early:5:tag:1-2,b:7"),
        (["b:1", "a:1"], "a:1,b:1"),
        (["c:tag:3"], "c:tag:3"),
        (["0-1-5", "0-1-6", "0-2-7", "0-1-9"], "0-1-5 to 0-1-9,0-2-7 to 0-2-7"),
        (["10-1-5", "2-1-5"], "2-1-5 to 2-1-5,10-1-5 to 10-1-5"),
        ([], ""),
    ],
)
def test_text_of_gtids_one_by_one_and_all_at_once(gtids: list[str], expected: str) -> None:
    one_by_one, at_once = GtidSet(), GtidSet()
    for gtid in gtids:
        one_by_one.add(gtid)
    at_once.add_all(pa.array([*gtids, None], pa.string()))
    assert (str(one_by_one), str(at_once)) == (expected, expected)
    # The written text parses to the same set.
    assert str(GtidSet.parse(expected)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, ""),
        ("", ""),
        (f" {UUID.upper()}:1-5:7 ,\n{UUID}:6, a:1", f"{UUID}:1-7,a:1"),
        ("a:1-3:tag:4:5-6:other:9", "a:1-3:other:9:tag:4-6"),
        ("0-1-100,1-2-5", "0-1-100,1-2-5"),
        ("0-1-5 to 0-1-9, 0-1-3 to 0-1-4", "0-1-3 to 0-1-9"),
    ],
)
def test_text_as_servers_write_it(text: str | None, expected: str) -> None:
    assert str(GtidSet.parse(text)) == expected


@pytest.mark.parametrize("text", ["a", "a:", "a:0", "a:5-3", "a:1:2x", ":1", "0-1", "0-1-5 to 0-2-9", "a:tag"])
def test_text_that_is_no_set(text: str) -> None:
    with pytest.raises(UsageError, match="is not a GTID set"):
        GtidSet.parse(text)


def test_members_of_a_mysql_set() -> None:
    held = GtidSet.parse("a:1-5:9-10:tag:3")
    gtids = pa.array(["a:1", "a:5", "a:6", "a:9", "a:11", "a:tag:3", "a:tag:4", "b:1", None])
    assert held.contains_all(gtids).tolist() == [True, True, False, True, False, True, False, False, False]
    assert "a:10" in held and "b:10" not in held


def test_members_of_a_mariadb_set() -> None:
    # As a position: the whole domain up to there, from any server; a named server has its own position.
    held = GtidSet.parse("0-1-100,0-2-40")
    assert [gtid in held for gtid in ("0-1-1", "0-1-100", "0-1-101", "0-2-41", "0-3-99", "0-3-101", "1-1-1")] == [
        True,
        True,
        False,
        False,
        True,
        False,
        False,
    ]
    # As the content of a segment: only the servers that wrote it.
    held = GtidSet.parse("0-1-5 to 0-1-9")
    assert [gtid in held for gtid in ("0-1-4", "0-1-5", "0-1-9", "0-2-7")] == [False, True, True, False]


@pytest.mark.parametrize(
    ("left", "right", "difference"),
    [
        ("a:1-10", "a:3-4:8", "a:1-2:5-7:9-10"),
        ("a:1-10", "a:1-20", ""),
        ("a:1-10,b:3", "b:3-5", "a:1-10"),
        ("a:5", "a:1-3", "a:5"),
        ("a:1-5:tag:1-5", "a:1-5:tag:2", "a:tag:1:3-5"),
        ("0-1-100", "0-1-60", "0-1-61 to 0-1-100"),
        ("0-1-5 to 0-1-9", "0-1-100", ""),
        ("0-3-7 to 0-3-9", "0-1-100", ""),
        ("0-1-100", "0-2-200", ""),
        ("0-1-100,1-1-1", "0-1-100", "1-1-1"),
        ("", "a:1", ""),
    ],
)
def test_what_is_more_in_one(left: str, right: str, difference: str) -> None:
    one, other = GtidSet.parse(left), GtidSet.parse(right)
    assert str(one - other) == difference
    assert (one <= other) == (difference == "")


def test_union() -> None:
    assert str(gtid_union(["a:1-3", None, "a:7", "a:4-6,b:1"])) == "a:1-7,b:1"
    assert str(GtidSet.parse("0-1-50") | GtidSet.parse("0-1-51 to 0-1-60")) == "0-1-60"
    assert not gtid_union([None, ""])


def test_positions_begin_at_0_and_intervals_of_mysql_stay() -> None:
    assert str(GtidSet.parse("0-1-5 to 0-1-9,1-2-7 to 1-2-7,2-1-3").as_positions()) == "0-1-9,1-2-7,2-1-3"
    assert str(GtidSet.parse("a:2-3:5:tag:7").as_positions()) == "a:2-3:5:tag:7"


def test_in_whatever_order_they_come() -> None:
    chance = random.Random(4)
    numbers = [number for number in range(1, 20_001) if number % 97]
    chance.shuffle(numbers)
    gtids = [f"{UUID}:{number}" for number in numbers]
    held, expected = GtidSet(), GtidSet()
    for start in range(0, len(gtids), 1_000):
        held.add_all(pa.array(gtids[start : start + 1_000]))
    for number in sorted(numbers):
        expected.add(f"{UUID}:{number}")
    assert str(held) == str(expected)
    assert held.contains_all(pa.array([f"{UUID}:{number}" for number in range(1, 20_001)])).sum() == len(numbers)
