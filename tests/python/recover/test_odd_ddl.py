"""Random statements that define tables, and rows between them: each row has its right names and values, or a reason.

A server that logs all names gives the expected rows; the same statements run on one that logs none. MySQL 5.6 cannot
log names: there each row is compared with the columns that the server has when the row changes. A finding is told with
the fewest statements that lead to it.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ingest.ddl import backwards, labels, shapes
from ingest.sources.snapshots.snapshot import SchemaSnapshot
from recover.selection.filters import Filters
from recover.sources.log import Log
from tests.servers.marked import marked
from tests.support.ddl.odd_story import Story, smaller, stage
from tests.support.depth import at_depth

pytestmark = pytest.mark.slow

STEPS = 200
SEED = int(os.environ.get("BINLOOM_DDL_SEED", "7"))
SEEDS = range(SEED, SEED + at_depth(quick=1, full=11))
ROWS = """
select binlog_file, start_pos, payload_ordinal, row_ordinal, schema_name, table_name, null as reason, row_before,
    row_after
from binloom.row_changes
union all by name
select binlog_file, start_pos, payload_ordinal, row_ordinal, schema_name, table_name, concat_ws(': ', reason, detail)
    as reason
from binloom.quarantined_row_events
order by binlog_file, start_pos, payload_ordinal, row_ordinal"""


@dataclass(frozen=True)
class Row:
    """A row change: either its images, or the reason for which it is in quarantine."""

    position: tuple[str, int]
    table: tuple[str, str]
    reason: str | None
    before: dict[str, str | None] | None
    after: dict[str, str | None] | None

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return [*((self.after if self.after is not None else self.before) or ())]


def rows_of(paths: Sequence[Path], snapshot: SchemaSnapshot | None) -> list[Row]:
    """Return the rows of files in their order."""
    log = Log.of_files(paths, Filters(), snapshot=snapshot)
    assert log.problems == ()
    return rows_in(log)


def rows_in(log: Log) -> list[Row]:
    """Return all rows of a log in their order."""
    found: list[tuple[Any, ...]] = log.connection.execute(ROWS).fetchall()
    return [Row(row[:2], row[4:6], *row[6:]) for row in found]


def columns_at(story: Story, row: Row) -> dict[str, str | None]:
    """Return the columns of a row's table at its position."""
    (*_, columns) = (columns for position, columns in story.columns if position <= row.position)
    return dict.fromkeys(columns[row.table])


def in_lower_case(names: Sequence[str]) -> list[str]:
    return [name.casefold() for name in names]


def values_of(row: Row) -> list[list[str | None]]:
    return [[*image.values()] for image in (row.before, row.after) if image is not None]


def has_broken_label(row: Row) -> bool:
    """Return whether MySQL has made a label of bytes that are no text; its own statements show an empty label."""
    return any(re.search(r"\\x[0-9a-f]{2}", value or "") for values in values_of(row) for value in values)


def finding(story: Story) -> str | None:
    """Return the first wrong name or value, or reason that is no good one; None if there is none."""
    logged = rows_of(story.files[0], None) if len(story.files) > 1 else []
    for row in logged:
        if row.reason is not None:
            return f"{row.reason}:\n{story.of(row.table)}"
    for first in sorted({0, story.first}):
        files = story.files[-1][first:]
        alone = rows_of(files, None)
        expected = logged[-len(alone) :] if alone and logged else []
        expected = expected or [replace(row, reason=None, after=columns_at(story, row)) for row in alone]
        if len(alone) != len(expected):
            return f"{len(alone)} rows instead of {len(expected)}"
        for snapshot in (None, *story.snapshots):
            found = alone if snapshot is None else rows_of(files, story.snapshots[snapshot])
            for row, right, known in zip(found, expected, alone, strict=True):
                if wrong := difference(row, right, known, has_values=bool(logged), is_whole=not first):
                    return f"{wrong}, with snapshot {snapshot} and files from {first}:\n{story.of(right.table)}"
    return None


def difference(row: Row, right: Row, known: Row, *, has_values: bool, is_whole: bool) -> str | None:
    """Return the difference between a row and the right one.

    `known` is what is known of it without a snapshot, from the whole log or from a part.
    """
    if row.reason is None:
        # A statement may spell the old name of a column in other letters than the table.
        if (row.table, in_lower_case(row.names)) != (right.table, in_lower_case(right.names)):
            return f"{row.table} {row.names} instead of {right.table} {right.names}"
        if has_values and not has_broken_label(right) and values_of(row) != values_of(right):
            return f"{values_of(row)} instead of {values_of(right)}"
    # The beginning of the log is unknown: a later snapshot may show that it was otherwise than it looked.
    elif is_whole and known.reason is None:
        return f"less is known with a snapshot: {row.reason}"
    # Servers show something else for the labels that a conversion made of bytes that are no text.
    elif is_whole and "labels" not in row.reason:
        return row.reason
    return None


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", marked("mysql", "mysql56", "mariadb", "mariadb118"))
def test_each_row_has_its_names_and_values_or_a_reason(kind: str, seed: int, tmp_path: Path) -> None:
    with stage(kind, tmp_path) as servers:
        story = servers.tell(seed, STEPS)
        if finding(story) is not None:
            lines = smaller(servers, story.lines, lambda one: finding(one) is not None)
            raise AssertionError(f"{finding(servers.play(lines))}\n\n" + ";\n".join(lines))
    alone = rows_of(story.files[-1], None)
    assert len(alone) > STEPS / 3
    # One conversion of a table can make labels that nobody knows, and many rows may follow.
    assert sum(row.reason is not None and "labels" not in row.reason for row in alone) < len(alone) / 10


def without_place(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a step backwards that takes a moved column for one at its old place."""
    return lambda shape, action: step(shape, replace(action, place=None))


FAULTS: dict[str, tuple[Any, str, Any]] = {
    "a column that is FIRST is before a generated key": (shapes, "_has_generated_key", lambda shape: False),
    "a conversion changes the bytes of labels": (shapes, "reinterpreted", lambda text, before, after: text),
    "a moved column was always there": (
        backwards,
        "_STEPS",
        backwards._STEPS | {"modify_column": without_place(backwards._changed)},
    ),
    "a label is what its text says": (labels.Literals, "read", lambda self, text: text),
}


@pytest.mark.mysql
@pytest.mark.deep
def test_faults_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stage("mysql", tmp_path) as servers:
        stories = [servers.tell(seed, STEPS) for seed in SEEDS]
    for fault, (place, name, value) in FAULTS.items():
        with monkeypatch.context() as changed:
            changed.setattr(place, name, value)
            assert any(finding(story) is not None for story in stories), fault
