"""One row through time."""

from collections.abc import Sequence
from dataclasses import dataclass

from binloom.answers.row_history import RowVersion, row_history_of
from binloom.ui.opened_log import OpenedLog
from binloom.ui.view import PAGE, View, show
from binloom.ui.words import Words
from ingest.errors import UsageError
from recover.sources.log import Log


@dataclass(frozen=True, slots=True)
class ColumnThen:
    """A column of a row in one version.

    Attributes
    ----------
    before, now
        Values; None is NULL.
    was_known, is_known
        Whether they are known.
    changed_by
        Number of the version that last gave the column another value, on the page; None if no known version did.
    """

    name: str
    before: str | None
    now: str | None
    was_known: bool
    is_known: bool
    is_changed: bool
    changed_by: int | None


def _page(log: Log, words: Words, opened: OpenedLog) -> str:
    table, key = words.needed("table"), words.needed("key")
    found = row_history_of(log, table, key, words.one("source"))
    versions = list(found)
    number = words.number("version", len(versions))
    if number > len(versions):
        raise UsageError(f"The row has no version {number}.", hint=f"It has {len(versions)}.")
    # The list has the versions around the one that is shown.
    first = max(0, min(number - 1 - PAGE // 2, len(versions) - PAGE))
    return show(
        "row.html",
        words=words,
        selecting={"table": [str(found.table)], "key": [key], "source": words.several("source")},
        table=str(found.table),
        key=key,
        source=found.table.source_id,
        versions=list(enumerate(versions, start=1))[first : first + PAGE],
        count=len(versions),
        number=number,
        version=versions[number - 1],
        columns=_columns(versions, number - 1),
        notes=(*opened.notes, *found.notes),
    )


def _columns(versions: Sequence[RowVersion], at: int) -> list[ColumnThen]:
    """Return the columns of a version, beside those of the version of the same row before it."""
    version = versions[at]
    earlier = [number for number in range(at) if versions[number].line == version.line]
    before = (versions[earlier[-1]].row if earlier else None) or {}
    now = version.row or {}
    changed = {*(version.changed_columns or ())}
    if version.changed_columns is None and (earlier or version.operation == "INSERT"):
        changed = {*before, *now}
    return [
        ColumnThen(
            name,
            before.get(name),
            now.get(name),
            name in before,
            name in now,
            name in changed,
            _changed_by(versions, [*earlier, at], name),
        )
        for name in {**now, **before}
    ]


def _changed_by(versions: Sequence[RowVersion], numbers: Sequence[int], column: str) -> int | None:
    """Return the number of the last of some versions that changed a column, or that created the row."""
    for number in reversed(numbers):
        version = versions[number]
        if version.changed_columns is None:
            if version.transaction_id is not None:
                return number + 1
        elif column in version.changed_columns:
            # ALTER TABLE gives columns other names and values, too.
            return number + 1
    return None


VIEW = View(("table", "key", "source", "version"), _page)
