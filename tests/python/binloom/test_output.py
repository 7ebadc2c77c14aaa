"""Tables for people: on a wide terminal, on a narrow one, and in a pipe."""

import io
import re
from collections.abc import Sequence

import pytest

from binloom.commands.output import print_table
from tests.support.terminal import Terminal

COLUMNS = ("version", "committed_at", "changes", "gtid", "remarks")
ROWS = [
    (1, "2026-08-30 10:17:42.123456", "status shipped → cancelled, amount 12.90 → 66.60", "0-1-74", None),
    (2, "2026-08-30 10:18:01.000001", "note äöü", "7c2c1e9a-0000-11ef-8d4e-0242ac120002:81", ["uncertain after 4"]),
]


def printed(monkeypatch: pytest.MonkeyPatch, width: int | None, rows: Sequence[tuple[object, ...]] = ROWS) -> list[str]:
    stream = io.StringIO() if width is None else Terminal()
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", stream)
        patch.setenv("TERM", "xterm")
        patch.setenv("COLUMNS", str(width or 20))
        print_table(COLUMNS, rows, title="shop.orders 1042")
    return re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).splitlines()


def test_a_pipe_gets_one_line_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    title, header, _, *rows = printed(monkeypatch, None)
    assert title == "shop.orders 1042"
    assert header.split("  ")[0] == "version"
    assert len(rows) == 2 and "12.90 → 66.60" in rows[0]


# The narrowest is four columns of 16 characters, one of 7, and gaps of 2.
@pytest.mark.parametrize("width", [79, 80, 100])
def test_a_table_that_fits_is_folded(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    _, header, *lines = printed(monkeypatch, width)
    assert header.split() == ["version", "committed", "at", "changes", "gtid", "remarks"]
    assert len(lines) > 3
    assert all(len(line) <= width for line in lines)


def test_a_table_that_does_not_fit_has_one_cell_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed(monkeypatch, 78) == [
        "shop.orders 1042",
        "row 1",
        "  version       1",
        "  committed at  2026-08-30 10:17:42.123456",
        "  changes       status shipped → cancelled, amount 12.90 → 66.60",
        "  gtid          0-1-74",
        "row 2",
        "  version       2",
        "  committed at  2026-08-30 10:18:01.000001",
        "  changes       note äöü",
        "  gtid          7c2c1e9a-0000-11ef-8d4e-0242ac120002:81",
        "  remarks       uncertain after 4",
    ]


def test_a_table_without_rows_has_its_header(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed(monkeypatch, 80, [])[1].split() == ["version", "committed", "at", "changes", "gtid", "remarks"]
