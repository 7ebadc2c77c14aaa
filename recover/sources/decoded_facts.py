"""The facts of decoded files beside their rows, as the marts have them: schema changes, statements that change rows,
incidents, foreign keys, and parts of the log that are missing.

A reader of rows through time needs all of them: a row that an unlogged write changed would otherwise look unchanged.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from ingest.errors import UsageError
from ingest.warehouse.project import own_project
from recover.sources.engine import registered

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from ingest.binlog import Scan
    from ingest.sources.directory import BinlogPath

_NO_ACTION: Final = ("NO ACTION", "RESTRICT")

_TABLES: Final = """
create schema binloom_quality;
create table binloom_staging.masked_sources (source_id varchar);
create table binloom_quality.lost_events (
    source_id varchar, epoch integer, binlog_file varchar, start_pos bigint, end_pos bigint, detail varchar
);
create table binloom_quality.stream_gaps (
    source_id varchar, from_epoch integer, from_file varchar, from_pos bigint
);
create table binloom_quality.failed_segments (
    source_id varchar, epoch integer, binlog_file varchar, segment_start bigint
);
create table binloom_quality.uncovered_bytes (
    source_id varchar, epoch integer, binlog_file varchar, range_start bigint, range_end bigint, defect varchar
);
create table binloom_quality.file_breaks (
    source_id varchar, epoch integer, binlog_file varchar, following_epoch integer, following_binlog_file varchar,
    defect varchar
);
create table binloom.foreign_keys (
    source_id varchar, constraint_name varchar, schema_name varchar, table_name varchar, column_name varchar,
    referenced_schema_name varchar, referenced_table_name varchar, referenced_column_name varchar,
    update_rule varchar, delete_rule varchar, ordinal_position integer, is_cascading boolean
);
"""

_VIEWS: Final = """
create view binloom.schema_changes as
with described as (
    select
        source_id, epoch, binlog_file, file_sequence, start_pos, payload_ordinal, action_ordinal, action,
        statement_type, schema_name, table_name,
        list_filter(
            [
                case when table_name is not null then concat_ws('.', schema_name, table_name) end,
                case
                    when action in ('rename_table', 'exchange_partition')
                        then concat_ws('.', other_schema_name, other_table_name)
                end
            ],
            lambda one: one is not null
        ) as named,
        concat_ws(
            ' ', action, column_name,
            nullif(
                array_to_string(
                    list_transform(columns, lambda defined: concat_ws(' ', defined.name, defined.column_type)), ', '
                ),
                ''
            ),
            place, after_column, nullif(concat_ws('.', other_schema_name, other_table_name), ''),
            case when len(key_columns) > 0 then concat('(', array_to_string(key_columns, ', '), ')') end,
            character_set, detail
        ) as description
    from decoded_ddl_actions
),
changes as (
    select
        source_id, epoch, binlog_file, file_sequence, start_pos, payload_ordinal,
        -- Structs, because the names of the first action count also if they are NULL.
        arg_min(
            {'statement_type': statement_type, 'schema_name': schema_name, 'table_name': table_name}, action_ordinal
        ) as first_action,
        list(description order by action_ordinal) as actions,
        flatten(list(named order by action_ordinal)) as named,
        bool_and(action != 'not_understood') as is_understood,
        bool_or(
            action in ('drop_table', 'drop_database', 'truncate_table', 'drop_partition', 'truncate_partition')
            and statement_type != 'DROP SEQUENCE'
        ) as destroys_rows
    from described
    group by source_id, epoch, binlog_file, file_sequence, start_pos, payload_ordinal
)
select
    concat_ws('/', source_id, epoch, binlog_file, start_pos, payload_ordinal) as schema_change_id,
    source_id, epoch, binlog_file, changes.file_sequence, start_pos, statements.end_pos, payload_ordinal,
    statements.transaction_pos, transactions.gtid, statements.thread_id, first_action.statement_type,
    first_action.schema_name, first_action.table_name, actions,
    list_filter(named, lambda one, place: list_position(named, one) = place) as tables,
    statements.default_schema, statements.error_code, statements.sql_text, is_understood, destroys_rows,
    statements.event_timestamp
from changes
inner join binloom_staging.stg_binlog__statements as statements
    using (source_id, epoch, binlog_file, start_pos, payload_ordinal)
left join (
    select binlog_file as file, start_pos as pos, gtid from decoded_transactions
) as transactions
    on binlog_file = transactions.file and statements.transaction_pos = transactions.pos;
create view binloom_quality.statement_format_changes as
with targets as (
    select
        source_id, {'epoch': epoch, 'sequence': file_sequence, 'pos': start_pos, 'file': binlog_file} as place,
        event_timestamp, unnest(dml_targets) as target
    from (
        select
            *, coalesce(try_cast(regexp_extract(binlog_file, '([0-9]+)$', 1) as bigint), 0) as file_sequence
        from binloom_staging.stg_binlog__statements
    )
)
select
    source_id, target.schema_name, target.table_name, target.verb, count(*) as statements,
    min(place).epoch as first_epoch, min(place).file as first_binlog_file, min(place).pos as first_pos,
    max(place).epoch as last_epoch, max(place).file as last_binlog_file, max(place).pos as last_pos,
    min(event_timestamp) as first_event_at, max(event_timestamp) as last_event_at
from targets
group by all;
"""


class Facts:
    """Collects the facts of the files of one source in the connection of their rows.

    Parameters
    ----------
    connection
        It has the tables of `decoded_rows`.
    source_id
        Name of the source.
    """

    def __init__(self, connection: "DuckDBPyConnection", source_id: str) -> None:
        from ingest.ddl.batches import DDL_ACTIONS

        self._connection = connection
        self._source_id = source_id
        connection.execute(_TABLES)
        with registered(connection, "batch", DDL_ACTIONS.empty_table()):
            connection.execute(
                "create table decoded_ddl_actions as select *, ''::varchar as source_id, 0::integer as epoch,"
                " ''::varchar as binlog_file, 0::bigint as file_sequence from batch"
            )
        connection.execute(_VIEWS)

    def add_foreign_keys(self, foreign_keys: Iterable[Mapping[str, Any]]) -> None:
        """Add the foreign keys of a schema snapshot: rows of the raw table `foreign_keys`."""
        names = (
            *("constraint_name", "schema_name", "table_name", "column_name", "referenced_schema_name"),
            *("referenced_table_name", "referenced_column_name", "update_rule", "delete_rule", "ordinal_position"),
        )
        for key in foreign_keys:
            # A rule that is unknown may be a cascade.
            rules = ((key[name] or "").upper() for name in ("update_rule", "delete_rule"))
            values = [self._source_id, *(key[name] for name in names), any(rule not in _NO_ACTION for rule in rules)]
            self._insert("binloom.foreign_keys", values)

    def add_missing_parts(self, scans: "Sequence[tuple[BinlogPath, Scan]]", failed: Mapping[str, int]) -> None:
        """Add the parts of files that could not be read, and the breaks between files.

        Parameters
        ----------
        scans
            The files in the order of the log.
        failed
            By name, the position from which on a file could not be decoded.

        Raises
        ------
        UsageError
            Different servers wrote the files.
        """
        for file, scan in scans:
            place = [self._source_id, 0, file.name]
            if file.name in failed:
                self._insert("binloom_quality.failed_segments", [*place, failed[file.name]])
            elif scan.complete_end < scan.file_size and not scan.format.is_in_use:
                values = [*place, scan.complete_end, scan.file_size, "gap"]
                self._insert("binloom_quality.uncovered_bytes", values)
            if scan.first_misplaced_pos is not None:
                values = [*place, scan.first_misplaced_pos, scan.first_misplaced_pos, "misplaced"]
                self._insert("binloom_quality.uncovered_bytes", values)
        for (file, scan), (next_file, next_scan) in pairwise(scans):
            _assert_same_server(scan, next_scan)
            defect = self._break((file, scan), (next_file, next_scan), is_known=file.name not in failed)
            if defect is not None:
                values = [self._source_id, 0, file.name, 0, next_file.name, defect]
                self._insert("binloom_quality.file_breaks", values)

    def _insert(self, table: str, values: Sequence[Any]) -> None:
        self._connection.execute(f"insert into {table} values ({', '.join('?' * len(values))})", values)

    def _break(self, one: "tuple[BinlogPath, Scan]", other: "tuple[BinlogPath, Scan]", is_known: bool) -> str | None:
        """Return why one file does not continue the other, as the model `file_breaks` names it; None if it does."""
        (file, scan), (next_file, next_scan) = one, other
        is_next = next_file.sequence == (file.sequence or 0) + 1 or scan.next_binlog_file == next_file.name
        if not is_next:
            return "missing_files"
        if scan.format.is_relay_log:
            return None
        if scan.next_binlog_file not in (None, next_file.name):
            return "other_next_file"
        rows = self._connection.execute(
            "select gtid from decoded_transactions where binlog_file = ?", [file.name]
        ).fetchall()
        gtids = [row[0] for row in rows]
        is_compared = is_known and None not in (scan.previous_gtids, next_scan.previous_gtids)
        if is_compared and not leads_to(scan.previous_gtids or "", gtids, next_scan.previous_gtids or ""):
            return "other_gtids"
        has_end = scan.next_binlog_file is not None or scan.event_counts.get("STOP", 0) > 0
        if not has_end and is_known and (not is_compared or None in gtids):
            return "no_end"
        return None


def _assert_same_server(scan: "Scan", other: "Scan") -> None:
    if scan.format.is_relay_log or other.format.is_relay_log:
        return
    writers = [f"{one.format.flavor} with server_id {one.format.server_id}" for one in (scan, other)]
    if writers[0] != writers[1]:
        raise UsageError(
            f"{writers[0]} wrote {scan.path}, and {writers[1]} wrote {other.path}.",
            hint="Give the files of one server, or land both with `binloom ingest`.",
        )


def leads_to(before: str, gtids: Sequence[str | None], after: str) -> bool:
    """Return whether the GTIDs in the head of a file and in the file are those in the head of the next file."""
    import pyarrow as pa

    from ingest.binlog.gtid_sets import GtidSet

    numbers = [one for one in gtids if one is not None]
    if any(":" in text for text in (before, after, *numbers[:1])):
        had, has = GtidSet.parse(before), GtidSet.parse(after)
        had.add_all(pa.array(numbers, pa.string()))
        return not str(had - has) and not str(has - had)
    had_numbers, has_numbers = positions_of([*_separated(before), *numbers]), positions_of(_separated(after))
    domains = {stem.split("-")[0] for stem in has_numbers}
    # A domain that the whole list lacks was deleted from it (FLUSH BINARY LOGS DELETE_DOMAIN_ID).
    return all(
        had_numbers.get(stem) == has_numbers.get(stem)
        for stem in {*had_numbers, *has_numbers}
        if stem.split("-")[0] in domains
    )


def _separated(gtids: str) -> list[str]:
    return [item.strip() for item in gtids.split(",") if item.strip()]


def positions_of(gtids: Iterable[str]) -> dict[str, int]:
    """Return the highest number of each domain and server of MariaDB."""
    found: dict[str, int] = defaultdict(int)
    for gtid in gtids:
        stem, _, number = gtid.rpartition("-")
        found[stem] = max(found[stem], int(number))
    return found


@cache
def events_without_rows() -> tuple[str, ...]:
    """Return the types of events that contain no rows; an unknown type may contain some."""
    with (own_project() / "seeds" / "event_types.csv").open(newline="") as file:
        return tuple(row["event_type"] for row in csv.DictReader(file) if row["changes_rows"] == "no")
