"""The changes of one table and all other events that change its rows, read from the marts."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from json import loads
from typing import TYPE_CHECKING, Any, Final

from ingest.ddl.temporary_tables import CREATES_TEMPORARY, DROPS_TEMPORARY
from ingest.ddl.verbs import phrase
from recover.sources.engine import columns_of_table, fetched, registered, unchanged
from recover.sources.files import missing_parts
from recover.sources.home.key_parts import rows_of_keys
from recover.sources.home.marts import MASKED_SOURCES, SERVER_STARTS
from recover.timeline import hiding
from recover.timeline.alterations import moves_keys
from recover.timeline.baselines import Baseline
from recover.timeline.columns import Columns
from recover.timeline.components import components
from recover.timeline.engines import starts_of, turns_of
from recover.timeline.events import Change, Effect, JsonChange, Place, Table, TableEvent
from recover.timeline.obscuring import obscuring
from recover.timeline.rows import Version, versions

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MARTS: Final = (
    *(("binloom", name) for name in ("row_changes", "transactions", "schema_changes", "table_versions")),
    *(("binloom", name) for name in ("quarantined_row_events", "foreign_keys")),
    *missing_parts.MARTS,
    ("binloom_quality", "statement_format_changes"),
    MASKED_SOURCES,
    SERVER_STARTS,
)
"""Tables that the functions of this module read."""

_DROPPING: Final = ("drop_table", "drop_database")
_EMPTYING: Final = (*_DROPPING, "truncate_table")
_CREATING: Final = ("create_table", "create_like", "create_select")
_REPLACING: Final = (
    *("rename_table", "exchange_partition", "other discard tablespace", "other import tablespace"),
    "other convert table to partition",
)
# A system-versioned table logs its former rows, too; a statement deletes all of them.
_VERSIONING: Final = re.compile(r"(?:add|drop)_column .* system versioning$")
_OBSCURING: Final = ("drop_partition", "truncate_partition", "not_understood")
_ALTERING: Final = (
    *("add_column", "drop_column", "modify_column", "rename_column", "add_primary_key", "drop_primary_key"),
    "convert_character_set",
)
_IGNORING: Final = phrase("(?:alter|online)", "ignore")
"""Such a statement deletes rows that a new unique key does not allow."""
_CONDITIONAL: Final = phrase("if", "not", "exists")


@dataclass(frozen=True)
class Rows:
    """The rows of row_changes that are read.

    Attributes
    ----------
    keys
        Only the rows of these keys; None: all rows.
    renamed
        A function: it takes a query of rows of `row_changes`, and returns one that gives them the requested names.
    beginning
        A baseline: its rows and the changes since are read. None: all changes.
    """

    keys: Sequence[str] | None = None
    renamed: Callable[[str], str] = unchanged
    beginning: Baseline | None = None

    @property
    def since(self) -> Place | None:
        """Place of the first row that is read."""
        return None if self.beginning is None else self.beginning.since

    def query(self, connection: "DuckDBPyConnection") -> str:
        """Return a query of the rows."""
        changes = "select * from binloom.row_changes" if self.keys is None else rows_of_keys(connection, self.keys)
        if self.beginning is not None:
            changes = f"{changes} union all by name {self.beginning.rows(self.keys)}"
        return self.renamed(changes)


ALL_ROWS: Final = Rows()


def changes_of(
    connection: "DuckDBPyConnection",
    table: Table,
    until: Place | None = None,
    rows: Rows = ALL_ROWS,
    *,
    in_one_group: bool = False,
) -> Iterator[Change]:
    """Yield the changes of a table that took effect, sorted by group, then in commit order.

    DuckDB sorts them, on disk if they do not fit in memory.

    Parameters
    ----------
    connection
        It has the tables of `MARTS`.
    table
        The table.
    until
        Only changes that took effect before this place; None: all.
    rows
        Only changes of these rows.
    in_one_group
        All changes are of one group, because a statement may have given rows other keys; see `has_moved_keys`.
    """
    cursor = connection.cursor()
    has_xa = _prepare_ends_of_xa(cursor, table)
    selected = _selected(rows.query(cursor), has_xa, rows.since, until)
    parameters = {**table.parameters, **_place_parameters("until", until), **_place_parameters("since", rows.since)}
    cursor.execute(
        f"""create or replace temp table moves as
        select distinct hash(key) as before, hash(key_after) as after
        from ({selected}) where key is not null and key_after is not null and key != key_after""",
        parameters,
    )
    cursor.execute("create or replace temp table moved (key_hash ubigint, root ubigint)")
    if _value(cursor.execute("select count(*) from moves")):
        import pyarrow as pa

        moves = cursor.execute("select * from moves").fetchnumpy()
        keys, roots = components(moves["before"], moves["after"])
        with registered(cursor, "found", pa.table({"key_hash": keys, "root": roots})):
            cursor.execute("insert into moved select * from found")
    # A mart that an older binloom built lacks these columns until it is built again.
    has_documents = {"undecoded_columns", "json_changes"} <= columns_of_table(cursor, "binloom", "row_changes")
    documents = "undecoded_columns, json_changes" if has_documents else "null, null"
    group = (
        "0"
        if in_one_group or _has_partial_images(cursor, selected, parameters)
        else "coalesce(moved.root, hash(coalesce(key, key_after)))"
    )
    cursor.execute(
        f"""select
            change_id, effect_epoch, effect_file_sequence, effect_pos, binlog_file, start_pos, transaction_id,
            {group} as "group", event_type, key, key_after, has_key,
            to_json(row_before)::varchar, to_json(row_after)::varchar, {documents}, table_version_id, gtid,
            committed_at at time zone 'UTC', event_timestamp at time zone 'UTC', thread_id
        from ({selected}) as changes
        left join moved on hash(coalesce(key, key_after)) = moved.key_hash
        order by "group", effect_epoch, effect_file_sequence, effect_pos, start_pos, payload_ordinal, row_ordinal""",
        parameters,
    )
    yield from map(_change, fetched(cursor, connection))


def _has_partial_images(cursor: "DuckDBPyConnection", selected: str, parameters: Mapping[str, object]) -> bool:
    """Return whether images of rows without a primary key lack columns: each row may be the one of such an image.

    The image after an update is completed with the one before.
    """
    found = cursor.execute(
        f"""select count(*) from ({selected}) as changes inner join binloom.table_versions as versions
            on changes.table_version_id = versions.table_version_id
        where not changes.has_key
            and cardinality(if(event_type = 'INSERT', row_after, row_before)) < len(versions.columns)""",
        parameters,
    )
    return bool(_value(found))


def events_of(connection: "DuckDBPyConnection", table: Table, until: Place | None = None) -> list[TableEvent]:
    """Return all events that change rows of a table, or may change them, without listing them, in commit order."""
    found = [*_schema_changes(connection, table), *obscuring(connection, table)]
    in_order = sorted(found, key=lambda event: (event.place, event.effect is Effect.OBSCURES, event.reason))
    return [event for event in hiding.without_idle_ends(in_order) if until is None or event.place < until]


def events_since(
    connection: "DuckDBPyConnection",
    table: Table,
    events: Iterable[TableEvent],
    baseline: Baseline | None,
    until: Place | None = None,
) -> list[TableEvent]:
    """Return those of all `events` of a table that are before a place, and behind a baseline if there is one.

    A baseline lacks what was prepared before it. If the log begins after that, only the commit is there.
    """
    before = [event for event in events if until is None or event.place < until]
    if baseline is None:
        return before
    since = hiding.since(before, baseline.place)
    # A statement that empties the table waits for the end of prepared transactions.
    is_emptied = any(event.effect is Effect.EMPTIES for event in since)
    unread = [] if is_emptied else _unread_prepared(connection, table.source_id, until)
    found = [*baseline.events, *since, *unread]
    # What hides rows does so behind the baseline, too.
    return sorted(found, key=lambda event: event.place if event.hiding is None else max(event.place, baseline.place))


def shows_all_rows(events: Sequence[TableEvent]) -> bool:
    """Return whether the log has all rows of a table: `events` are all since it was empty, and none hides a change."""
    emptied = max((place for place, one in enumerate(events) if one.effect is Effect.EMPTIES), default=None)
    return emptied is not None and all(one.effect is Effect.ALTERS for one in events[emptied + 1 :])


def _unread_prepared(connection: "DuckDBPyConnection", source_id: str, until: Place | None) -> list[TableEvent]:
    """Return the commits before a place of prepared transactions whose changes the log lacks: those of any table.

    The end of a prepared transaction has at most a GTID and the commit itself.
    """
    rows = connection.execute(
        """select epoch, file_sequence, start_pos, binlog_file from binloom.transactions
        where source_id = $source and xa_xid is not null and outcome = 'commit' and events <= 2
            and transaction_id not in (
                select xa_end_transaction_id from binloom.transactions
                where source_id = $source and xa_end_transaction_id is not null
            )
        order by all""",
        {"source": source_id},
    ).fetchall()
    found = (
        TableEvent(Place(*place), Effect.OBSCURES, "XA COMMIT of changes that the log lacks", file)
        for *place, file in rows
    )
    return [event for event in found if until is None or event.place < until]


def has_prepared_across(connection: "DuckDBPyConnection", table: Table, place: Place) -> bool:
    """Return whether the table has changes that were prepared before a place, and took effect after it."""
    cursor = connection.cursor()
    if not _prepare_ends_of_xa(cursor, table):
        return False
    found = cursor.execute(
        f"""select count(*) from ({_selected("select * from binloom.row_changes", True, place, None)})
        where (epoch, file_sequence, start_pos) < ($since_epoch, $since_file_sequence, $since_pos)""",
        {**table.parameters, **_place_parameters("since", place)},
    )
    return bool(_value(found))


def note_changed_keys(connection: "DuckDBPyConnection", table: Table, since: Place, until: Place, into: str) -> None:
    """Make a table of the keys, before and after, of the changes that took effect between two places."""
    has_xa = _prepare_ends_of_xa(connection, table)
    selected = _selected("select * from binloom.row_changes", has_xa, since, until)
    connection.execute(
        f"""create or replace table {into} as
        select distinct unnest([key, key_after]) as "key" from ({selected})""",
        {**table.parameters, **_place_parameters("since", since), **_place_parameters("until", until)},
    )


def columns_of(connection: "DuckDBPyConnection", table: Table) -> dict[str, Columns]:
    """Return the columns of each version of a table, the oldest first as far as that is known."""
    rows = connection.execute(
        """select table_version_id, columns, primary_key_columns from binloom.table_versions
        where source_id = $source and schema_name = $schema and table_name = $table
        order by valid_from_epoch, try_cast(regexp_extract(valid_from_binlog_file, '([0-9]+)$', 1) as bigint),
            valid_from_pos, table_version_id""",
        table.parameters,
    ).fetchall()
    found = {version: Columns.of_version(columns, key) for version, columns, key in rows}
    generated = _generated_columns(connection, table)
    return found if generated is None else {id_: columns.with_generated(generated) for id_, columns in found.items()}


def _generated_columns(connection: "DuckDBPyConnection", table: Table) -> set[str] | None:
    """Return the columns that a statement of the log computes from others; None if the log lacks the CREATE TABLE."""
    steps = [step for event in _statements(connection, table) for reading in event.readings for step in reading]
    if not any(step.action == "create_table" for step in steps):
        return None
    return {column.name for step in steps for column in step.columns if column.is_generated}


def has_moved_keys(
    connection: "DuckDBPyConnection",
    table: Table,
    events: Sequence[TableEvent],
    columns: Mapping[str, Columns],
    rows: Rows = ALL_ROWS,
) -> bool:
    """Return whether an event of a table may have given some of its rows other keys."""
    if moves_keys(events, columns.values(), with_zeros=False):
        return True
    return moves_keys(events, columns.values()) and _has_zeros(connection, table, rows)


def versions_of(
    connection: "DuckDBPyConnection",
    table: Table,
    events: Sequence[TableEvent],
    columns: Mapping[str, Columns],
    baseline: Baseline | None,
    until: Place | None,
) -> Iterator[Version]:
    """Return the versions of all rows of a table up to a place, from a baseline on if there is one.

    `events` are those of `events_since`.
    """
    rows = Rows(beginning=baseline)
    is_together = has_moved_keys(connection, table, events, columns, rows)
    changes = changes_of(connection, table, until, rows, in_one_group=is_together)
    return versions(changes, events, columns)


def _has_zeros(connection: "DuckDBPyConnection", table: Table, rows: Rows) -> bool:
    """Return whether a key has a part that is zero: a server renumbers it when its column becomes AUTO_INCREMENT."""
    cursor = connection.cursor()
    found = cursor.execute(
        f"""select count(*) from ({rows.query(cursor)})
        where source_id = $source and schema_name = $schema and table_name = $table
            and (regexp_matches(pk_values, $zero) or regexp_matches(pk_values_after, $zero))""",
        {**table.parameters, "zero": r"(^|\|)-?[0.]+(\||$)"},
    )
    return bool(_value(found))


def _selected(rows: str, has_xa: bool, since: Place | None, until: Place | None) -> str:
    """Return a query of changes with the place where each took effect and the row's key before and after."""
    own = "(epoch, file_sequence, start_pos)"
    places = (
        """coalesce(ended.end_epoch, changes.epoch) as effect_epoch,
        coalesce(ended.end_file_sequence, changes.file_sequence) as effect_file_sequence,
        coalesce(ended.end_pos, changes.start_pos) as effect_pos,"""
        if has_xa
        else "epoch as effect_epoch, file_sequence as effect_file_sequence, start_pos as effect_pos,"
    )
    ended = "left join ends_of_xa as ended using (epoch, binlog_file, transaction_pos)" if has_xa else ""
    effect = "(effect_epoch, effect_file_sequence, effect_pos)" if has_xa else own
    # DuckDB joins two comparisons of a tuple to one that it does not support.
    since_effect = f"[{effect[1:-1]}]"
    image_key = "to_json(list_sort(map_entries({})))::varchar"
    after = "case when row_before is null then row_after else map_concat(row_before, row_after) end"
    return f"""select
        * exclude (pk_values, pk_values_after),
        concat_ws('/', source_id, epoch, binlog_file, transaction_pos) as transaction_id,
        pk_values is not null as has_key,
        case when event_type != 'INSERT' then coalesce(pk_values, {image_key.format("row_before")}) end as key,
        case when event_type != 'DELETE'
            then coalesce(pk_values_after, pk_values, {image_key.format(after)}) end as key_after
    from (
        select changes.*, {places}
        from ({rows}) as changes {ended}
        where source_id = $source and schema_name = $schema and table_name = $table and outcome = 'commit'
    )
    where {"true" if until is None else f"{effect} < ($until_epoch, $until_file_sequence, $until_pos)"}
        and {"true" if since is None else f"{since_effect} >= [$since_epoch, $since_file_sequence, $since_pos]"}"""


def _place_parameters(name: str, place: Place | None) -> dict[str, int]:
    return {} if place is None else {f"{name}_{part}": value for part, value in place._asdict().items()}


def _prepare_ends_of_xa(cursor: "DuckDBPyConnection", table: Table) -> bool:
    """Make a table of the places where prepared transactions took effect; return whether there are any."""
    prepared = cursor.execute(
        """select true from binloom.transactions
        where source_id = $source and outcome = 'commit' and xa_end_transaction_id is not null limit 1""",
        {"source": table.source_id},
    )
    # Few logs have one, and the join costs more than the question.
    if prepared.fetchone() is None:
        return False
    cursor.execute(
        """create or replace temp table ends_of_xa as
        select prepared.epoch::integer as epoch, prepared.binlog_file, prepared.start_pos as transaction_pos,
            ending.epoch::integer as end_epoch, ending.file_sequence as end_file_sequence, ending.start_pos as end_pos
        from binloom.transactions as prepared
        inner join binloom.transactions as ending on prepared.xa_end_transaction_id = ending.transaction_id
        where prepared.source_id = $source and prepared.outcome = 'commit'""",
        {"source": table.source_id},
    )
    return bool(_value(cursor.execute("select count(*) from ends_of_xa")))


def _value(cursor: "DuckDBPyConnection") -> Any:
    row = cursor.fetchone()
    return row[0] if row is not None else None


def _change(row: tuple[Any, ...]) -> Change:
    # DuckDB returns maps and times with a zone as Python objects ten times slower than as JSON and times without one.
    change_id, epoch, file_sequence, pos, *facts = row
    before, after, undecoded, json_changes = facts[8:12]
    facts[8:12] = [
        None if before is None else loads(before),
        None if after is None else loads(after),
        tuple(undecoded or ()),
        tuple(JsonChange(**one) for one in json_changes or ()),
    ]
    facts[14:16] = [None if moment is None else moment.replace(tzinfo=UTC) for moment in facts[14:16]]
    return Change(change_id, Place(epoch, file_sequence, pos), *facts)


def _schema_changes(connection: "DuckDBPyConnection", table: Table) -> Iterator[TableEvent]:
    statements = sorted(_statements(connection, table), key=lambda event: event.place)
    turns = turns_of(connection, table, statements)
    # The connections with a temporary table of this name, which hides the other one from their statements.
    hidden_from = set[int | None]()
    for event in statements:
        if CREATES_TEMPORARY in event.actions:
            hidden_from.add(event.thread_id)
        elif DROPS_TEMPORARY in event.actions:
            hidden_from.discard(event.thread_id)
        if event.hiding is not None:
            yield event
        elif event.thread_id in hidden_from and not event.actions[0].startswith((*_DROPPING, *_CREATING)):
            if _effect(event) is not None:
                yield replace(event, reason=f"{event.reason}, perhaps on a temporary table of this name")
        else:
            yield from hiding.with_engine(event, _effect(event), turns.get(event.place))
    yield from starts_of(connection, table, turns)


def _statements(connection: "DuckDBPyConnection", table: Table) -> Iterator[TableEvent]:
    """Yield the statements that may concern a table; their effect is still to be told."""
    rows = connection.execute(
        """select epoch, file_sequence, start_pos, binlog_file, statement_type, actions, sql_text, default_schema,
            event_timestamp, gtid, thread_id,
            coalesce(lower(schema_name) = lower($schema) and lower(table_name) = lower($table), false)
        from binloom.schema_changes
        where source_id = $source and (
            list_contains(list_transform(tables, lambda one: lower(one)), lower($schema || '.' || $table))
            or (table_name is null and lower(schema_name) = lower($schema) and list_contains(actions, 'drop_database'))
            or (not is_understood and contains(lower(sql_text), lower($table)))
        )""",
        table.parameters,
    ).fetchall()
    has_literals = not _has_masks(connection, table.source_id)
    for epoch, file_sequence, pos, file, statement_type, actions, text, schema, at, gtid, thread_id, is_own in rows:
        event = TableEvent(
            Place(epoch, file_sequence, pos),
            Effect.OBSCURES,
            _reason(statement_type, actions),
            file,
            tuple(actions),
            text or "",
            schema,
            has_literals,
            at,
            gtid,
            thread_id,
        )
        yield event if is_own or not hiding.makes_members(actions) else hiding.of_member(event)


def _has_masks(connection: "DuckDBPyConnection", source_id: str) -> bool:
    """Return whether the statements of a source may be masked: their literals are not those of the server then."""
    found = connection.execute(
        f"select count(*) from {'.'.join(MASKED_SOURCES)} where source_id = ?", [source_id]
    ).fetchone()
    return found is not None and found[0] > 0


def _effect(event: TableEvent) -> Effect | None:
    """Return the effect of a statement on the rows of a table that it names; None if it changes none."""
    actions = event.actions
    if any(action.startswith(_REPLACING) or _VERSIONING.match(action) for action in actions):
        return Effect.REPLACES
    if any(action.startswith(_EMPTYING) for action in actions):
        return Effect.EMPTIES
    if any(action.startswith(_CREATING) for action in actions):
        return None if _CONDITIONAL.search(event.statement) else Effect.EMPTIES
    if _IGNORING.search(event.statement) or any(action.startswith(_OBSCURING) for action in actions):
        return Effect.OBSCURES
    if any(action.startswith(_ALTERING) for action in actions):
        return Effect.ALTERS
    return None


def _reason(statement_type: str, actions: Sequence[str]) -> str:
    partition = next((action for action in actions if "partition" in action.split(" ")[0]), None)
    return f"{statement_type} ({partition.replace('_', ' ')})" if partition is not None else statement_type
