"""The places of some rows in the raw tables: in row events, statements, baselines and quarantine."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ingest.errors import UsageError
from ingest.landing.erasure import Erasure, FilePlan, RowKey, hash_of_selection
from recover.selection.filters import key_parts
from recover.sources.engine import literal
from recover.sources.home.key_parts import rows_of_keys
from recover.timeline.events import Place, Table
from recover.timeline.history import UnknownRowError, history_of, key_of
from recover.timeline.names import Period, periods_of
from recover.timeline.rows import Version

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass
class Found:
    """The rows to erase.

    Attributes
    ----------
    erasure
        Their places.
    keys
        Their keys, also those that the rows had before or after.
    quarantined
        Number of row events in quarantine among them.
    children
        Foreign keys by which other tables refer to the table, and the number of changes of rows that do.
    """

    erasure: Erasure
    keys: tuple[str, ...]
    quarantined: int = 0
    children: list[tuple[str, int]] = field(default_factory=list)


def find(connection: "DuckDBPyConnection", table: Table, keys: Sequence[str]) -> Found:
    """Find all values of some rows in the raw tables, also under the keys that the rows had at other times.

    Parameters
    ----------
    connection
        It has the tables of `table_log.MARTS`, the baselines and `row_changes`.
    table
        The table.
    keys
        Keys as a person gives them.

    Raises
    ------
    UnknownRowError
        The table has no primary key, or nothing has a row with a key.
    """
    asked = [key_of(connection, table, key) for key in keys]
    periods = periods_of(connection, table)
    erasure = Erasure(
        table.source_id,
        table.schema_name,
        table.table_name,
        hash_of_selection(table.schema_name, table.table_name, asked),
    )
    found = Found(erasure, tuple(asked))
    for key, text in zip(asked, keys, strict=True):
        versions, unknown = _versions(connection, table, key)
        before = (erasure.row_events, _baseline_rows(erasure), found.quarantined)
        _add_changes(connection, found, versions)
        all_keys = {key, *(version.key for version in versions)}
        for period in periods:
            _add_unfinished(connection, found, period, key)
            _add_baselines(connection, found, period, key, versions)
            _add_quarantined(connection, found, period, all_keys)
        if (erasure.row_events, _baseline_rows(erasure), found.quarantined) == before:
            raise unknown or UsageError(
                f"No landed change or baseline contains row {text} of {table}.", hint="Check the key."
            )
    found.keys = tuple(sorted({*found.keys}))
    found.children = _children(connection, table, found.keys)
    return found


def _baseline_rows(erasure: Erasure) -> int:
    return sum(map(len, erasure.baseline_rows.values()))


def _versions(connection: "DuckDBPyConnection", table: Table, key: str) -> tuple[list[Version], UnknownRowError | None]:
    try:
        return history_of(connection, table, key), None
    except UnknownRowError as error:
        return [], error


def _add_changes(connection: "DuckDBPyConnection", found: Found, versions: Sequence[Version]) -> None:
    """Add the changes of versions, and the changes that ended them."""
    changes = [change for version in versions for change in (version.change, version.ended_by) if change is not None]
    ids = sorted({change.change_id for change in changes if hasattr(change, "change_id")})
    if ids:
        condition = f"change_id in ({', '.join(map(literal, ids))})"
        _add_rows(connection, found, f"select * from binloom.row_changes where {condition}")


def _add_unfinished(connection: "DuckDBPyConnection", found: Found, period: Period, key: str) -> None:
    """Add changes that did not take effect: of transactions that were rolled back, or have not ended."""
    rows, table = rows_of_keys(connection, [key]), period.table
    names = f"source_id = {literal(table.source_id)} and schema_name = {literal(table.schema_name)}"
    _add_rows(
        connection,
        found,
        f"select * from ({rows}) where {names} and table_name = {literal(table.table_name)} and outcome != 'commit'"
        f" and {period.condition}",
    )


def _add_rows(connection: "DuckDBPyConnection", found: Found, rows: str) -> None:
    places = connection.execute(
        f"""select changes.epoch, changes.binlog_file, start_pos, payload_ordinal, row_ordinal, transaction_pos,
            pk_values, pk_values_after,
            list_transform(primary_key_columns, lambda name: list_position(column_names, name) - 1)
        from ({rows}) as changes
        inner join binloom.table_versions as versions using (table_version_id)"""
    ).fetchall()
    for epoch, name, start, payload, row, transaction, key, key_after, ordinals in places:
        file = _file(found.erasure, epoch, name)
        file.rows[start, payload, row] = tuple(ordinals)
        file.transactions.add(transaction)
        found.keys = (*found.keys, *(one for one in (key, key_after) if one is not None))


def _file(erasure: Erasure, epoch: int, name: str) -> FilePlan:
    return erasure.files.setdefault((epoch, name), FilePlan(epoch, name))


def _add_baselines(
    connection: "DuckDBPyConnection", found: Found, period: Period, key: str, versions: Sequence[Version]
) -> None:
    """Add the row in each baseline: under its own key, and under another key that it had at that place."""
    table = period.table
    keys = ", ".join(map(literal, sorted({key, *(version.key for version in versions)})))
    rows = connection.execute(
        f"""select baseline_id, row_number, pk_values, epoch, file_sequence, binlog_pos from binloom.baseline_rows
        where source_id = $source and schema_name = $schema and table_name = $table and pk_values in ({keys})""",
        table.parameters,
    ).fetchall()
    for baseline_id, number, row_key, *numbers in rows:
        place = None if numbers[0] is None else Place(*numbers)
        if place is not None and not period.includes(place):
            continue
        is_its_own = row_key == key or any(
            version.key == row_key and place is not None and version.is_at(place) for version in versions
        )
        if is_its_own:
            of_table = (baseline_id, table.schema_name, table.table_name)
            found.erasure.baseline_rows.setdefault(of_table, set()).add(number)


def _add_quarantined(connection: "DuckDBPyConnection", found: Found, period: Period, keys: set[str]) -> None:
    """Add row events in quarantine that contain the values of a key anywhere: their columns are not known."""
    conditions = [
        " and ".join(
            f"(list_contains(before_values, {literal(part)}) or list_contains(after_values, {literal(part)}))"
            for part in key_parts(key)
        )
        for key in sorted(keys)
    ]
    rows: list[Any] = connection.execute(
        f"""select epoch, binlog_file, start_pos, payload_ordinal, row_ordinal, transaction_pos
        from binloom.quarantined_row_events
        where source_id = $source and schema_name = $schema and table_name = $table and row_ordinal is not null
            and {period.condition} and ({" or ".join(conditions)})""",
        period.table.parameters,
    ).fetchall()
    for epoch, name, *place, transaction in rows:
        file = _file(found.erasure, epoch, name)
        key: RowKey = (place[0], place[1], place[2])
        if key not in file.rows:
            file.rows[key] = None
            found.quarantined += 1
        if transaction is not None:
            file.transactions.add(transaction)


def _children(connection: "DuckDBPyConnection", table: Table, keys: Sequence[str]) -> list[tuple[str, int]]:
    """Return the foreign keys of one column that refer to the table, with the changes of rows that have a key."""
    references = connection.execute(
        """select schema_name, table_name, any_value(column_name) from binloom.foreign_keys
        where source_id = $source and referenced_schema_name = $schema and referenced_table_name = $table
        group by schema_name, table_name, constraint_name having count(*) = 1 order by all""",
        table.parameters,
    ).fetchall()
    found = []
    texts = ", ".join(map(literal, keys))
    for schema, child, column in references:
        row = connection.execute(
            f"""select count(*) from binloom.row_changes
            where source_id = ? and schema_name = ? and table_name = ?
                and (row_before[{literal(column)}] in ({texts}) or row_after[{literal(column)}] in ({texts}))""",
            [table.source_id, schema, child],
        ).fetchone()
        if row is not None and row[0]:
            found.append((f"{schema}.{child}.{column}", row[0]))
    return found
