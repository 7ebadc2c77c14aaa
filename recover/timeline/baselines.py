"""Baselines: all rows of a table at one place of the log, as the beginning of what is known about it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from recover.sources.engine import literal
from recover.timeline.events import Effect, Place, Table, TableEvent

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


VIEWS: Final = (("binloom", "baselines"), ("binloom", "baseline_rows"))
"""Tables that the functions of this module read. Binlog files and clusters do not have them."""

_LAST: Final = 2**62
"""A number behind all positions and epochs."""


def sequence_of_file(binlog_file: str) -> int:
    """Return the number in a file's name, as the macro of this name does."""
    number = re.search(r"([0-9]+)$", binlog_file)
    return int(number[1]) if number is not None else 0


@dataclass(frozen=True)
class Baseline:
    """All rows of a table at a place, or those that the log gave when its older files expired.

    Attributes
    ----------
    place
        Transactions that begin before it are in the rows, all others are not.
    is_complete
        Whether these are all rows of the table.
    """

    baseline_id: str
    place: Place
    binlog_file: str
    table: Table
    is_complete: bool = True

    @property
    def since(self) -> Place:
        """The place of the rows: just before the transactions that they do not contain."""
        return self.place._replace(pos=self.place.pos - 1)

    @property
    def events(self) -> list[TableEvent]:
        """The event that the table has no other rows, if the baseline is complete."""
        before = self.place._replace(pos=self.place.pos - 2)
        return [TableEvent(before, Effect.EMPTIES, "baseline", self.binlog_file)] if self.is_complete else []

    def rows(self, keys: Sequence[str] | None = None) -> str:
        """Return a query of the rows, or of those with some keys, as inserts with the columns of row_changes.

        They have the columns that `changes_of` reads.
        """
        is_wanted = "true" if keys is None else f"pk_values in ({', '.join(map(literal, keys))})"
        return f"""select
                concat('baseline/', baseline_id, '/', row_number) as change_id, source_id, epoch, file_sequence,
                binlog_file, binlog_pos - 1 as start_pos, binlog_pos - 1 as transaction_pos, 0 as payload_ordinal,
                0 as row_ordinal, 'commit' as outcome, 'INSERT' as event_type, schema_name, table_name, pk_values,
                "row" as row_after, table_version_id
            from binloom.baseline_rows
            where baseline_id = {literal(self.baseline_id)} and schema_name = {literal(self.table.schema_name)}
                and table_name = {literal(self.table.table_name)} and {is_wanted}"""


def baseline_of(connection: "DuckDBPyConnection", table: Table, until: Place | None = None) -> Baseline | None:
    """Return the last baseline of a table up to a place, None if there is none.

    A baseline inside a part of the log that was not read is left out: changes right after it are missing.
    """
    has_baselines = connection.execute(
        "select count(*) from information_schema.tables where table_schema = 'binloom' and table_name = 'baselines'"
    ).fetchone()
    if has_baselines in (None, (0,)):
        return None
    found = connection.execute(
        """select baseline_id, epoch, file_sequence, binlog_pos, binlog_file, coalesce(is_complete, true)
        from binloom.baselines
        where source_id = $source and schema_name = $schema and table_name = $table and epoch is not null
        order by epoch desc, file_sequence desc, binlog_pos desc, taken_at desc""",
        table.parameters,
    ).fetchall()
    baselines = (Baseline(row[0], Place(*row[1:4]), row[4], table, row[5]) for row in found)
    unread = [*_unread_parts(connection, table.source_id)] if found else []
    return next(
        (
            one
            for one in baselines
            if (until is None or one.place <= until) and not any(begin < one.place < end for begin, end in unread)
        ),
        None,
    )


def _unread_parts(connection: "DuckDBPyConnection", source_id: str) -> Iterator[tuple[Place, Place]]:
    """Yield the begin and the end of each part of the log of a source that was not read."""
    rows = connection.execute(
        """select from_epoch, from_file, from_pos, to_epoch, to_file, to_pos
        from binloom_quality.stream_gaps where source_id = $source
        union all
        select epoch, binlog_file, segment_start, epoch, binlog_file, coalesce(segment_end, $last)
        from binloom_quality.failed_segments where source_id = $source
        union all
        select epoch, binlog_file, range_start, epoch, binlog_file, coalesce(range_end, $last)
        from binloom_quality.uncovered_bytes where source_id = $source and defect != 'overlap'""",
        {"source": source_id, "last": _LAST},
    ).fetchall()
    for epoch, file, pos, end_epoch, end_file, end_pos in rows:
        end = Place(_LAST, 0, 0) if end_file is None else Place(end_epoch, sequence_of_file(end_file), end_pos or 0)
        yield Place(epoch, sequence_of_file(file), pos), end
