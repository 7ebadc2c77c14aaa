"""Events that may have changed rows of a table without listing them: gaps, quarantine, statements in the log."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from recover.sources.engine import columns_of_table, literal
from recover.sources.home.landed_marts import STATEMENTS
from recover.timeline.baselines import sequence_of_file
from recover.timeline.events import Effect, Place, Table, TableEvent
from recover.timeline.reach import SYSTEM_SCHEMAS, Reach

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_UNCOMMITTED: Final = {
    "rollback": "a rolled-back transaction, whose changes remain in tables of an engine without transactions",
    "none": "a transaction whose end is not in the log",
    "unknown": "changes that ROLLBACK TO SAVEPOINT may have taken back",
}
"""Outcomes of changes that may have remained, in words."""

_OF_STATEMENTS: Final = """source_id = $source and coalesce(lower(schema_name) = lower($schema), true)
    and coalesce(lower(table_name) = lower($table), true)"""
"""Whether a statement may be one on a table. Its tables are NULL if they are not known."""

_OBSCURING_QUERIES: Final = {
    "rows in quarantine": """
        select epoch, file_sequence, min(start_pos), binlog_file from binloom.quarantined_row_events
        where source_id = $source and coalesce(schema_name = $schema, true) and coalesce(table_name = $table, true)
        group by epoch, file_sequence, binlog_file, transaction_pos""",
    "an incident of the server": """
        select epoch, null, start_pos, binlog_file from binloom_quality.lost_events where source_id = $source""",
    "a gap in the followed log": """
        select from_epoch, null, from_pos, from_file from binloom_quality.stream_gaps where source_id = $source""",
    "a part that was not read": """
        select epoch, null, segment_start, binlog_file from binloom_quality.failed_segments
        where source_id = $source
        union all
        select epoch, null, range_start, binlog_file from binloom_quality.uncovered_bytes
        where source_id = $source and defect != 'overlap'""",
    "missing files or transactions": """
        select following_epoch, null, 0, following_binlog_file from binloom_quality.file_breaks
        where source_id = $source and following_binlog_file is not null""",
    "a statement in the log": f"""
        select first_epoch, null, first_pos, first_binlog_file from binloom_quality.statement_format_changes
        where {_OF_STATEMENTS}
        union
        select last_epoch, null, last_pos, last_binlog_file from binloom_quality.statement_format_changes
        where {_OF_STATEMENTS}""",
}


def obscuring(connection: "DuckDBPyConnection", table: Table) -> Iterator[TableEvent]:
    """Yield the events after which rows of a table may be others than the log shows, in no particular order."""
    for reason, query in _OBSCURING_QUERIES.items():
        names = {name: value for name, value in table.parameters.items() if f"${name}" in query}
        for epoch, file_sequence, pos, file in connection.execute(query, names).fetchall():
            sequence = sequence_of_file(file) if file_sequence is None else file_sequence
            yield TableEvent(Place(epoch, sequence, pos), Effect.OBSCURES, reason, file)
    yield from _statements_between(connection, table)
    yield from _statements_beyond(connection, table)
    yield from _uncommitted(connection, table)


def _statements_between(connection: "DuckDBPyConnection", table: Table) -> Iterator[TableEvent]:
    """Yield the statements in the log between the first and the last one of a table, which the mart has."""
    of_mart = f"from binloom_quality.statement_format_changes where {_OF_STATEMENTS}"
    # Few tables have any, and a search for them reads the targets of all statements.
    has_more = connection.execute(f"select bool_or(statements > 2) {of_mart}", table.parameters).fetchone()
    if has_more in (None, (False,), (None,)):
        return
    # A copy of a cluster has only what its question needs.
    if not {"start_pos", "dml_targets"} <= columns_of_table(connection, *STATEMENTS):
        return
    rows = connection.execute(
        f"""select distinct epoch, binlog_file, start_pos from (
            select *, unnest(dml_targets, max_depth := 2)
            from {".".join(STATEMENTS)} where source_id = $source and len(dml_targets) > 0
        ) where {_OF_STATEMENTS} and (epoch, binlog_file, start_pos) not in (
            select unnest([(first_epoch, first_binlog_file, first_pos), (last_epoch, last_binlog_file, last_pos)])
            {of_mart}
        )""",
        table.parameters,
    ).fetchall()
    for epoch, file, pos in rows:
        yield TableEvent(Place(epoch, sequence_of_file(file), pos), Effect.OBSCURES, "a statement in the log", file)


def _statements_beyond(connection: "DuckDBPyConnection", table: Table) -> Iterator[TableEvent]:
    """Yield the statements on other tables in the log that may have changed rows of this one."""
    of_others = f"""source_id = $source and table_name is not null and not ({_OF_STATEMENTS})
        and coalesce(lower(schema_name) not in {SYSTEM_SCHEMAS}, true)"""
    statements = f"""
        select schema_name, table_name, first_epoch as epoch, first_binlog_file as file, first_pos as pos
        from binloom_quality.statement_format_changes where {of_others}
        union
        select schema_name, table_name, last_epoch, last_binlog_file, last_pos
        from binloom_quality.statement_format_changes where {of_others}"""
    # Few logs have any, and a search for them reads all statements that change a schema.
    if not connection.execute(f"select 1 from ({statements}) limit 1", table.parameters).fetchall():
        return
    reach = Reach(connection, table.source_id)
    if {"start_pos", "dml_targets"} <= columns_of_table(connection, *STATEMENTS):
        statements += f"""
            union
            select schema_name, table_name, epoch, binlog_file, start_pos
            from (
                select *, unnest(dml_targets, max_depth := 2)
                from {".".join(STATEMENTS)} where source_id = $source and len(dml_targets) > 0
            ) where {of_others}"""
    for schema, name, epoch, file, pos in connection.execute(statements, table.parameters).fetchall():
        place = Place(epoch, sequence_of_file(file), pos)
        why = reach.beyond(schema, name, place)
        if why is not None:
            on = name if schema is None else f"{schema}.{name}"
            yield TableEvent(place, Effect.OBSCURES, f"a statement in the log on {on}, {why},", file)


def _uncommitted(connection: "DuckDBPyConnection", table: Table) -> Iterator[TableEvent]:
    """Yield the transactions with rows of a table of which it is not certain whether they remained."""
    is_uncommitted = "outcome = 'none' or (outcome = 'rollback' and xa_xid is null)"
    # Neither a mart that an older binloom built nor a copy of one has the column.
    has_ranges = "rolled_back_ranges" in columns_of_table(connection, "binloom", "transactions")
    may_be_unknown = "rolled_back_ranges is not null" if has_ranges else "true"
    # Few logs have such a transaction, and a search for its rows opens every file of the table.
    files = connection.execute(
        "select distinct binlog_file from binloom.transactions"
        f" where source_id = $source and ({is_uncommitted} or {may_be_unknown})",
        {"source": table.source_id},
    ).fetchall()
    if not files:
        return
    rows = connection.execute(
        f"""select epoch, file_sequence, min(changes.start_pos), binlog_file, changes.outcome
        from binloom.row_changes as changes
        left join (select epoch, binlog_file, start_pos as transaction_pos, outcome from binloom.transactions
            where source_id = $source and ({is_uncommitted})) as uncommitted
            using (epoch, binlog_file, transaction_pos)
        where source_id = $source and schema_name = $schema and table_name = $table
            and binlog_file in ({", ".join(literal(file) for (file,) in files)})
            and (changes.outcome = uncommitted.outcome or changes.outcome = 'unknown')
        group by epoch, file_sequence, binlog_file, transaction_pos, changes.outcome""",
        table.parameters,
    ).fetchall()
    for epoch, file_sequence, pos, file, outcome in rows:
        yield TableEvent(Place(epoch, file_sequence, pos), Effect.OBSCURES, _UNCOMMITTED[outcome], file)
