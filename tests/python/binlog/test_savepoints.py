"""Rows that ROLLBACK TO SAVEPOINT took back: the ranges that a transaction records."""

import struct
from pathlib import Path

import pytest

from ingest.binlog import open_binlog
from tests.support.binlog.forge import LONG, MARIADB_POST_HEADERS, POST_HEADERS, FileMaker

OF_MYSQL_5_5 = POST_HEADERS[:27]
OF_MARIADB_5_5 = MARIADB_POST_HEADERS[:161]


def query(text: str | bytes, charset: int = 0) -> bytes:
    """Return the body of a QUERY event; with a character set, that of its client."""
    status = struct.pack("<BHHH", 4, charset, charset, charset) if charset else b""
    text = text.encode() if isinstance(text, str) else text
    return struct.pack("<IIBHH", 7, 0, 0, 0, len(status)) + status + b"\0" + text


def taken_back(
    folder: Path, *steps: int | str | bytes, post_headers: bytes = POST_HEADERS, charset: int = 0
) -> dict[int, str]:
    """Return the outcomes of the rows of a transaction that have another than it; a number inserts a row."""
    maker = FileMaker(post_headers=post_headers)
    maker.begin()
    places = {}
    for step in steps:
        if isinstance(step, int):
            maker.table_map([LONG], b"")
            # Version 1, which servers before MySQL 5.6 write: one column, which is present.
            body = struct.pack("<IHH", 1, 0, 1) + b"\1\xff" + b"\0" + struct.pack("<i", step)
            places[step] = maker.event(23, body)
        else:
            maker.event(2, query(step, charset))
    maker.commit()
    (transaction,) = (
        row
        for kind, batch in open_binlog(maker.write(folder)).batches()
        if kind == "transactions"
        for row in batch.to_pylist()
    )
    assert (transaction["outcome"], transaction["row_events"]) == ("commit", len(places))
    found: dict[int, str] = {}
    for value, place in places.items():
        for one in transaction["rolled_back_ranges"] or ():
            is_inside = (one["start_pos"], one["start_ordinal"]) <= (place, 0) < (one["end_pos"], one["end_ordinal"])
            if is_inside:
                found.setdefault(value, one["outcome"])
    return found


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((1, "SAVEPOINT `a`", 2), []),
        ((1, "SAVEPOINT `a`", 2, "ROLLBACK TO `a`", 3), [2]),
        ((1, "SAVEPOINT `a`", 2, "ROLLBACK TO `a`", 3, "ROLLBACK TO `a`", 4), [2, 3]),
        ((1, "SAVEPOINT `a`", 2, "SAVEPOINT `b`", 3, "ROLLBACK TO `b`", 4, "ROLLBACK TO `a`", 5), [2, 3, 4]),
        ((1, "SAVEPOINT `a`", 2, "SAVEPOINT `b`", 3, "ROLLBACK TO `b`", 4), [3]),
        ((1, "SAVEPOINT a", 2, "SAVEPOINT b", 3, "ROLLBACK TO a", 4, "SAVEPOINT b", 5, "ROLLBACK TO b"), [2, 3, 5]),
        # The same name again replaces the savepoint.
        ((1, "SAVEPOINT `a`", 2, "SAVEPOINT `A`", 3, "ROLLBACK TO `a`", 4), [3]),
        ((1, "SAVEPOINT `a`", 2, "SAVEPOINT `b`", 3, "SAVEPOINT `a`", 4, "ROLLBACK TO `b`", 5), [3, 4]),
        ((1, "SAVEPOINT `a`", 2, "RELEASE SAVEPOINT `a`", "SAVEPOINT `a`", 3, "ROLLBACK TO `a`"), [3]),
        ((1, "SAVEPOINT `a``b`", 2, 'ROLLBACK TO "a`b"'), [2]),
        ((1, 'SAVEPOINT "a""b"', 2, 'SAVEPOINT "a"', 3, 'ROLLBACK TO `a"b`'), [2, 3]),
        ((1, "SAVEPOINT Größe", 2, "ROLLBACK TO `GRÖßE`"), [2]),
        ((1, "SAVEPOINT `ς`", 2, "ROLLBACK TO `σ`"), [2]),
        # On MySQL `é` is `e`; where it is not, ROLLBACK TO could not succeed.
        ((1, "SAVEPOINT `é`", 2, "ROLLBACK TO `e`"), [2]),
        ((1, "SAVEPOINT `a `", 2, "SAVEPOINT `a`", 3, "ROLLBACK TO `a `"), [2, 3]),
        ((1, "SAVEPOINT savepoint", 2, "rollback to savepoint"), [2]),
        ((1, "SAVEPOINT savepoint", 2, "rollback to savepoint savepoint"), [2]),
        ((1, "/* x */ savepoint\tsp -- y", 2, "/* a */ # b\n-- c\nROLLBACK /* d */ WORK\nTO /**/ SAVEPOINT sp ;"), [2]),
        ((1, "/*!50003 savepoint sp*/", 2, "rollback to`sp`"), [2]),
        # Other statements.
        ((1, "SAVEPOINT `a`", 2, "insert into t values ('ROLLBACK TO `a`')", 3), []),
        ((1, "SAVEPOINT `a`", 2, "/* ROLLBACK TO `a` */ create temporary table rollback_to (a int)", 3), []),
    ],
)  # fmt: skip
def test_rows_after_a_savepoint_are_taken_back(
    steps: tuple[int | str, ...], expected: list[int], tmp_path: Path
) -> None:
    assert taken_back(tmp_path, *steps) == dict.fromkeys(expected, "rollback")
    assert taken_back(tmp_path, *steps, post_headers=MARIADB_POST_HEADERS) == dict.fromkeys(expected, "rollback")
    # These servers may have written rows of a table without transactions between the others.
    assert taken_back(tmp_path, *steps, post_headers=OF_MYSQL_5_5) == dict.fromkeys(expected, "unknown")
    assert taken_back(tmp_path, *steps, post_headers=OF_MARIADB_5_5) == dict.fromkeys(expected, "unknown")


def test_a_name_is_what_its_client_wrote(tmp_path: Path) -> None:
    latin1 = 8
    steps = (1, "savepoint Ä".encode("latin1"), 2, "rollback to ä".encode("latin1"), 3)
    assert taken_back(tmp_path, *steps, charset=latin1) == {2: "rollback"}


def test_rows_are_uncertain_if_their_savepoint_is(tmp_path: Path) -> None:
    # The savepoint was set in a part of the log that is not there.
    assert taken_back(tmp_path, 1, "ROLLBACK TO `a`", 2) == {1: "unknown"}
    # MySQL and MariaDB before 11.5 hold these names for equal, later MariaDB do not: was `a` replaced?
    steps = (1, "SAVEPOINT `a`", 2, "SAVEPOINT `ä`", 3, "ROLLBACK TO `a`", 4)
    assert taken_back(tmp_path, *steps) == {2: "unknown", 3: "unknown"}
    # What the uncertain rows contain may be certain.
    steps = (1, "SAVEPOINT `b`", 2, "ROLLBACK TO `b`", 3, "ROLLBACK TO `unseen`", 4)
    assert taken_back(tmp_path, *steps) == {1: "unknown", 2: "rollback", 3: "unknown"}


def test_transactions_have_savepoints_of_their_own(tmp_path: Path) -> None:
    maker = FileMaker()
    for number in range(3):
        maker.begin()
        if number == 0:
            maker.event(2, query("SAVEPOINT `a`"))
        else:
            maker.event(2, query("ROLLBACK TO `a`"))
        maker.commit()
    found = [
        row["rolled_back_ranges"]
        for kind, batch in open_binlog(maker.write(tmp_path)).batches()
        if kind == "transactions"
        for row in batch.to_pylist()
    ]
    assert [ranges and [one["outcome"] for one in ranges] for ranges in found] == [None, ["unknown"], ["unknown"]]


def test_many_savepoints_cost_little(tmp_path: Path) -> None:
    # Frameworks set a savepoint with a new name for each block. Quadratic work would take minutes.
    maker = FileMaker()
    maker.begin()
    for number in range(20_000):
        maker.event(2, query(f"SAVEPOINT `s{number}`"))
    for number in reversed(range(20_000)):
        maker.event(2, query(f"ROLLBACK TO `s{number}`"))
    maker.commit()
    (ranges,) = (
        batch["rolled_back_ranges"].to_pylist()[0]
        for kind, batch in open_binlog(maker.write(tmp_path)).batches()
        if kind == "transactions"
    )
    assert len(ranges) == 1
