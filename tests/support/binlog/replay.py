"""Applies decoded row changes in commit order to empty tables: the result must equal SELECT."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from ingest.binlog import SchemaHints, open_binlog


class Absent(Enum):
    """Marks a value that is absent from a partial image."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "absent"


ABSENT = Absent.ABSENT
Value = str | None | Absent
Values = tuple[Value, ...]


@dataclass(frozen=True)
class Change:
    """One changed row; None for an image that this kind of change does not have."""

    event_type: str
    schema: str
    table: str
    before: Values | None
    after: Values | None

    @property
    def is_full(self) -> bool:
        return ABSENT not in (self.before or ()) and ABSENT not in (self.after or ())


@dataclass(frozen=True)
class Decoded:
    """The decoder's output for one file, as plain rows by kind of batch."""

    row_events: list[dict[str, Any]]
    transactions: list[dict[str, Any]]
    statements: list[dict[str, Any]]
    table_maps: list[dict[str, Any]]
    unsupported_events: list[dict[str, Any]]

    @classmethod
    def of(cls, path: Path, hints: SchemaHints | None = None) -> Decoded:
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for kind, batch in open_binlog(path, hints=hints).batches():
            found[kind] += batch.to_pylist()
        return cls(*(found[kind] for kind in cls.__dataclass_fields__))

    def changes(self) -> list[Change]:
        """Return all changes in file order, including changes of prepared transactions."""
        return [_change(row) for row in self.row_events]

    def committed_changes(self) -> list[Change]:
        """Return the changes in commit order; an XA transaction counts at its commit, and not without one."""
        rows = _by_transaction(self.row_events)
        statements = _by_transaction(self.statements)
        prepared: dict[str, list[Change]] = {}
        changes: list[Change] = []
        for transaction in self.transactions:
            start = transaction["start_pos"]
            own = [_change(row) for row in rows.pop(start, [])]
            texts = [statement["sql_text"] or "" for statement in statements.pop(start, [])]
            if transaction["outcome"] == "xa_prepare":
                (xid,) = (text.removeprefix("XA END ") for text in texts if text.startswith("XA END "))
                prepared[xid] = own
            elif transaction["outcome"] == "commit":
                changes += own
                for text in texts:
                    if text.startswith("XA COMMIT "):
                        changes += prepared.pop(text.removeprefix("XA COMMIT "))
        assert not rows, "row events outside of transactions"
        return changes


def _by_transaction(rows: Iterable[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    grouped: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        grouped[row["transaction_pos"]].append(row)
    return grouped


def _change(row: dict[str, Any]) -> Change:
    kind, count = row["event_type"], row["column_count"]
    assert len(row["before_values"]) == len(row["after_values"]) == count
    return Change(
        kind,
        row["schema_name"],
        row["table_name"],
        None if kind == "INSERT" else _image(row["before_values"], row["before_columns"]),
        None if kind == "DELETE" else _image(row["after_values"], row["after_columns"]),
    )


def _image(values: Sequence[str | None], present: Collection[int] | None) -> Values:
    if present is None:
        return tuple(values)
    assert all(value is None for ordinal, value in enumerate(values) if ordinal not in present)
    return tuple(value if ordinal in present else ABSENT for ordinal, value in enumerate(values))


def changes_of_lines(lines: Iterable[str]) -> Iterator[Change]:
    """Read the output of `binloom decode`."""
    for line in lines:
        row = json.loads(line)
        images = (
            None if row[side] is None else _image(row[side], row.get(f"{side}_columns")) for side in ("before", "after")
        )
        yield Change(row["event_type"], row["schema_name"], row["table_name"], *images)


def replay(changes: Iterable[Change], generated: Collection[int] = ()) -> list[Values]:
    """Apply the changes of one table to an empty table; each before image must match an existing row.

    A value is `ABSENT` where no image has it. A column that an after image does not contain keeps its value, unless
    its ordinal is in `generated`: then the server computes the value again.
    """
    rows: Counter[Values] = Counter()
    for change in changes:
        old = _found(rows, change)
        if old is not None:
            rows[old] -= 1
            if not rows[old]:
                del rows[old]
        if change.after is not None:
            rows[_changed(old, change.after, generated)] += 1
    return list(rows.elements())


def _found(rows: Counter[Values], change: Change) -> Values | None:
    """Return the row that matches the before image."""
    if change.before is None or change.before in rows:
        return change.before
    for row in rows:
        if _agree(row, change.before):
            return row
    raise AssertionError(f"{change.table}: {change.event_type} of a row that is not there: {change.before}")


def _changed(old: Values | None, after: Values, generated: Collection[int]) -> Values:
    if old is None or ABSENT not in after:
        return after
    return tuple(
        old[ordinal] if value is ABSENT and ordinal not in generated else value for ordinal, value in enumerate(after)
    )


def _agree(one: Values, other: Values) -> bool:
    return len(one) == len(other) and all(
        mine == theirs or mine is ABSENT or theirs is ABSENT for mine, theirs in zip(one, other, strict=True)
    )


def difference(found: Iterable[Values], expected: Iterable[Values]) -> tuple[list[Values], list[Values]]:
    """Return the surplus rows and the missing rows; an absent value agrees with any value."""
    extra, missing = Counter(found), Counter(expected)
    extra, missing = extra - missing, missing - extra
    for row in list(extra.elements()):
        match = next((other for other in missing if _agree(row, other)), None) if ABSENT in row else None
        if match is not None:
            extra[row] -= 1
            missing[match] -= 1
            missing += Counter()
    return list(extra.elements()), list(missing.elements())
