"""The facts of decoded files beside their rows, as the marts have them: schema changes, statements that change rows,
and foreign keys.

A reader of rows through time needs all of them: a row that an unlogged write changed would otherwise look unchanged.
"""

import csv
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from ingest.ddl.actions import INACTIVE_RULES, TAKES_ROWS
from ingest.warehouse.project import own_project
from recover.sources.engine import insert_row, registered

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TABLES: Final = """
create table binloom_staging.masked_sources (source_id varchar);
create table binloom.foreign_keys (
    source_id varchar, constraint_name varchar, schema_name varchar, table_name varchar, column_name varchar,
    referenced_schema_name varchar, referenced_table_name varchar, referenced_column_name varchar,
    update_rule varchar, delete_rule varchar, ordinal_position integer, is_cascading boolean
);
create table binloom_staging.logged_tables (source_id varchar, schema_name varchar, table_name varchar);
"""

_VIEWS: Final = f"""
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
            {{'statement_type': statement_type, 'schema_name': schema_name, 'table_name': table_name}}, action_ordinal
        ) as first_action,
        list(description order by action_ordinal) as actions,
        flatten(list(named order by action_ordinal)) as named,
        bool_and(action != 'not_understood') as is_understood,
        bool_or(
            action in {TAKES_ROWS}
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
        source_id, {{'epoch': epoch, 'sequence': file_sequence, 'pos': start_pos, 'file': binlog_file}} as place,
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

    def add_logged_tables(self, tables: Iterable[tuple[str, str]]) -> None:
        """Add the tables of all row events, also of those that are not read: they are no views."""
        names = sorted(tables)
        self._connection.execute(
            "insert into binloom_staging.logged_tables select $source, unnest($schemas::varchar[]),"
            " unnest($names::varchar[])",
            {
                "source": self._source_id,
                "schemas": [schema for schema, _ in names],
                "names": [name for _, name in names],
            },
        )

    def add_foreign_keys(self, foreign_keys: Iterable[Mapping[str, Any]]) -> None:
        """Add the foreign keys of a schema snapshot: rows of the raw table `foreign_keys`."""
        names = (
            *("constraint_name", "schema_name", "table_name", "column_name", "referenced_schema_name"),
            *("referenced_table_name", "referenced_column_name", "update_rule", "delete_rule", "ordinal_position"),
        )
        for key in foreign_keys:
            # A rule that is unknown may be a cascade.
            rules = ((key[name] or "").upper() for name in ("update_rule", "delete_rule"))
            values = [
                self._source_id,
                *(key[name] for name in names),
                any(rule not in INACTIVE_RULES for rule in rules),
            ]
            insert_row(self._connection, "binloom.foreign_keys", *values)


@cache
def events_without_rows() -> tuple[str, ...]:
    """Return the types of events that contain no rows; an unknown type may contain some."""
    with (own_project() / "seeds" / "event_types.csv").open(newline="") as file:
        return tuple(row["event_type"] for row in csv.DictReader(file) if row["changes_rows"] == "no")
