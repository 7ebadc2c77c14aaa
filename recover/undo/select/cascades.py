"""Rows that a server deleted or changed by cascading foreign keys, without writing them to its log.

MySQL before 9.6 and MariaDB carry out CASCADE and SET NULL inside the storage engine. The log then contains only the
deleted parent, or the parent with its new key. This module adds a change for each child whose last image refers to
that parent, right before the change of the parent. It is then treated like a logged change: fold, conflicts, order and
proof. Nothing is added if the log shows the child unchanged afterwards: the server has logged the cascade, or there
was none.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from recover.sources.engine import literal
from recover.timeline.baselines import Baseline
from recover.timeline.events import Place
from recover.undo.rows.literals import LABELS, TEXTS
from recover.undo.select.obstacles import plain_type
from recover.undo.select.overlay import lay_over
from recover.undo.select.selected import ORDER, Selected, is_selected
from recover.undo.tables.definitions import Definitions
from recover.undo.tables.ranks import table_ranks
from recover.undo.tables.table import CASCADING, ForeignKey, Table, TableName

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Cuts = Mapping[TableName, Sequence[Place]]
"""Places of the log after which earlier images of a table no longer show its rows."""

_STEP: Final = 1_000_000
"""Distance of two rows of an event, so that the rows of a cascade have places between them."""
_MOST_LEVELS: Final = 1000

# A synthesized change has these columns of the change of its parent, and all others of the child's last image.
_OF_PARENT: Final = (
    *ORDER.split(", "), "binlog_file", "end_pos", "transaction_pos", "transaction_id", "gtid", "outcome",
    "event_timestamp", "committed_at", "event_hour", "thread_id", "server_id",
)  # fmt: skip


class CascadeError(Exception):
    """Cascades cannot be followed in this log. The message is a sentence without its end."""


def cascading_keys(definitions: Definitions, tables: Iterable[TableName]) -> list[ForeignKey]:
    """Return the cascading foreign keys that connect some tables with their parents and children, at any distance."""
    left = [key for key in definitions.foreign_keys if {key.delete_rule, key.update_rule} & {*CASCADING, "UNKNOWN"}]
    reached, found = {*tables}, []
    while near := [key for key in left if {key.table, key.parent} & reached]:
        found += near
        reached |= {name for key in near for name in (key.table, key.parent)}
        left = [key for key in left if key not in near]
    return found


def cascading_tables(definitions: Definitions, tables: Iterable[TableName]) -> set[TableName]:
    """Return some tables with all that these keys connect with them."""
    return {*tables}.union(*((key.table, key.parent) for key in cascading_keys(definitions, tables)))


def add_cascades(
    connection: "DuckDBPyConnection",
    selected: Selected,
    definitions: Definitions,
    cuts: Cuts | None = None,
    emptied: Cuts | None = None,
    baselines: Mapping[TableName, Baseline] | None = None,
) -> dict[TableName, int]:
    """Add the changes that cascades made, in the tables around a selection, to `row_changes` of a connection.

    The selection must be made again afterwards, so that it contains those of its transactions.

    Parameters
    ----------
    cuts
        Places of events that change rows without listing them, by table.
    emptied
        Those of them after which a table had no rows.
    baselines
        By table, all of its rows at a place before the selection, since which the log shows each change.

    Returns
    -------
    dict
        How many rows of a table may be missing, because their last images are older than a cut.

    Raises
    ------
    CascadeError
        The log does not show enough of a table.
    """
    source_id, keys = selected.source_id, cascading_keys(definitions, selected.tables)
    connection.execute(
        "create or replace table synthesized_changes as"
        " select * replace (row_ordinal::bigint as row_ordinal) from binloom.row_changes limit 0"
    )
    lay_over(
        connection,
        "logged_row_changes",
        f"select * replace (row_ordinal::bigint * {_STEP} as row_ordinal) from binloom.logged_row_changes"
        " union all by name select * from synthesized_changes",
    )
    tables = {key.table for key in keys} | {key.parent for key in keys}
    ranks = table_ranks(tables, keys)
    for key in keys:
        if key.table != key.parent and ranks[key.parent] > ranks[key.table]:
            raise CascadeError(f"the foreign keys of {_text(key.table)} and {_text(key.parent)} form a circle")
        _assert_followable(connection, source_id, key, definitions)
    missing: dict[TableName, int] = {}
    for name in sorted({key.table for key in keys}, key=ranks.__getitem__):
        table = definitions.tables[name]
        own = [key for key in keys if key.table == name and (key.delete_rule in CASCADING or _changes_keys(key))]
        own_cuts = (cuts or {}).get(name, ())
        connection.execute(
            f"create or replace temp view child_changes as {_changes_of(source_id, name, (baselines or {}).get(name))}"
        )
        for _ in range(_MOST_LEVELS):
            if not own or not _add_level(connection, source_id, table, own, own_cuts):
                break
        else:
            raise CascadeError(f"cascades in {table.text} have more than {_MOST_LEVELS} levels")
        seen_later = [key for key in own if _shows_old_key(table, key)]
        for _ in range(_MOST_LEVELS):
            if not _add_unseen(connection, source_id, table, seen_later, own_cuts):
                break
        if own and own_cuts:
            _reach(connection, source_id, table, own, (emptied or {}).get(name, ()))
            if count := _count_reached_by_selection(connection):
                missing[name] = count
    return missing


def synthesized(connection: "DuckDBPyConnection", selected: Selected) -> dict[tuple[str, str], int]:
    """Return how many of the selected changes were added, by table and type."""
    rows = connection.execute(
        "select schema_name || '.' || table_name, event_type, count(*) from synthesized_changes as changes"
        f" where {is_selected(selected.is_whole)} group by all order by all"
    ).fetchall()
    return {(table, event_type): int(count) for table, event_type, count in rows}


def _changes_of(source_id: str, table: TableName, baseline: Baseline | None) -> str:
    """Return a query of the changes of a table, after those that a baseline gives instead of earlier ones."""
    schema, name = map(literal, table)
    logged = (
        f"select * from binloom.row_changes where source_id = {literal(source_id)} and schema_name = {schema}"
        f" and table_name = {name} and outcome = 'commit'"
    )
    if baseline is None:
        return logged
    since = f"(epoch, file_sequence, start_pos) >= {tuple(baseline.place)}"
    # The server itself gave the names of its rows.
    return f"{logged} and {since} union all by name select *, 'exact' as binding_confidence from ({baseline.rows()})"


def _assert_followable(
    connection: "DuckDBPyConnection", source_id: str, key: ForeignKey, definitions: Definitions
) -> None:
    parent, child = definitions.tables.get(key.parent), definitions.tables.get(key.table)
    if parent is None or child is None:
        raise CascadeError(f"no schema snapshot describes both tables of foreign key {key.name}")
    if "UNKNOWN" in (key.delete_rule, key.update_rule):
        raise CascadeError(f"the rule of foreign key {key.name} of {child.text} is unknown")
    if not child.primary_key:
        raise CascadeError(f"{child.text} has no primary key, so that its rows cannot be followed")
    for table in (parent, child):
        if missing := _missing_columns(connection, source_id, table):
            raise CascadeError(
                f"images of {table.text} in the log lack {', '.join(missing)}. Either the server logs only some columns"
                " (binlog_row_image), or an ALTER TABLE gave these columns another type, and the former one is not"
                " known: a definition of the table from before this statement tells it (--ddl)"
            )
    moves = f"event_type = 'UPDATE' and ({_moved(key)})"
    if _changes_keys(key) and _count(connection, source_id, parent.name, moves):
        _assert_same_types(key, parent, child)


def _assert_same_types(key: ForeignKey, parent: Table, child: Table) -> None:
    """Refuse a key whose values look different in parent and child: the text of one is not that of the other."""
    for name, referenced in zip(key.columns, key.parent_columns, strict=True):
        one, other = child.by_name[name], parent.by_name[referenced]
        is_text = one.data_type == other.data_type and one.data_type in TEXTS
        if not is_text and plain_type(one.column_type) != plain_type(other.column_type):
            raise CascadeError(f"columns {name} of {child.text} and {referenced} of {parent.text} have other types")


def _changes_keys(key: ForeignKey) -> bool:
    """Return whether a new key of a parent changes its children. Within one table, servers refuse the new key."""
    return key.update_rule in CASCADING and key.table != key.parent


def _shows_old_key(table: Table, key: ForeignKey) -> bool:
    """Return whether children had exactly the old key of a parent. The case of a text may have been another one."""
    folds = any(table.by_name[name].data_type in TEXTS | LABELS for name in key.columns)
    return key.update_rule == "CASCADE" and _changes_keys(key) and not folds


def _moved(key: ForeignKey) -> str:
    """Return the condition that a change of the parent changed the columns that a foreign key refers to."""
    return " or ".join(
        f"row_before[{literal(name)}] is distinct from row_after[{literal(name)}]" for name in key.parent_columns
    )


def _count(connection: "DuckDBPyConnection", source_id: str, table: TableName, condition: str) -> int:
    row = connection.execute(
        "select count(*) from binloom.row_changes where source_id = ? and schema_name = ? and table_name = ?"
        f" and outcome = 'commit' and ({condition})",
        [source_id, *table],
    ).fetchone()
    return int(row[0]) if row else 0


def _missing_columns(connection: "DuckDBPyConnection", source_id: str, table: Table) -> list[str]:
    """Return the columns that some image of a table lacks, in the order of the table."""
    schema, name = map(literal, table.name)
    logged = (
        f"from binloom.row_changes where source_id = {literal(source_id)} and schema_name = {schema}"
        f" and table_name = {name} and outcome = 'commit'"
    )
    images = " union all ".join(f"select map_keys({image}) as names {logged}" for image in ("row_before", "row_after"))
    present = connection.execute(f"select distinct names from ({images}) where names is not null").fetchall()
    return [one for one in table.stored_names if any(one not in names for (names,) in present)]


def _add_level(
    connection: "DuckDBPyConnection", source_id: str, table: Table, keys: Sequence[ForeignKey], cuts: Sequence[Place]
) -> bool:
    """Add the first change that a parent made to each version of a row; return whether there was one."""
    _reach(connection, source_id, table, keys, cuts)
    count, inexact, crossed = connection.execute(
        "select count(*), count(*) filter (where not is_exact), count(*) filter (where is_crossed"
        " or until_change in (select change_id from synthesized_changes)) from (select *,"
        # Two foreign keys may share a column, and give it two values.
        "  len(list_distinct(flatten(list(new_values) over same))) >"
        "  len(list_distinct(list_transform(flatten(list(new_values) over same), lambda one: one.key))) as is_crossed"
        " from reached_rows window same as (partition by row_key, place))"
    ).fetchone() or (0, 0, 0)
    if inexact:
        raise CascadeError(
            f"texts in a foreign key of {table.text} differ only in case or spaces from those of its parent"
        )
    if crossed:
        raise CascadeError(f"several foreign keys reached the same rows of {table.text}, in an order that is unknown")
    if count:
        connection.execute(f"insert into synthesized_changes by name {_added(connection, table)}")
    return bool(count)


def _add_unseen(
    connection: "DuckDBPyConnection", source_id: str, table: Table, keys: Sequence[ForeignKey], cuts: Sequence[Place]
) -> bool:
    """Add the last change that a parent made to each row before its first image; return whether there was one.

    If a row existed before and refers to a key that its parent got by an UPDATE, the row got the key with its parent.
    """
    found = 0
    for key in keys:
        schema, name = table.name
        parameters = {
            "source": source_id, "schema": schema, "name": name,
            "parent_schema": key.parent[0], "parent_name": key.parent[1],
        }  # fmt: skip
        connection.execute(f"create or replace temp table reached_rows as {_unseen(table, key, cuts)}", parameters)
        (count,) = connection.execute("select count(*) from reached_rows").fetchone() or (0,)
        if count:
            connection.execute(f"insert into synthesized_changes by name {_added(connection, table)}")
        found += count
    return bool(found)


def _unseen(table: Table, key: ForeignKey, cuts: Sequence[Place]) -> str:
    """Return a query of rows as they were before a parent got another key, from their first images in the log."""
    place = _wide(ORDER.split(", "))
    equal = " and ".join(
        f"parents.row_after[{literal(referenced)}] = first_images.seen[{literal(name)}]"
        for name, referenced in zip(key.columns, key.parent_columns, strict=True)
    )
    uncut = ""
    if cuts:
        listed = ", ".join(f"({_wide(map(str, (*cut, 0, 0)))})" for cut in cuts)
        uncut = (
            f" and not exists (select 1 from (values {listed}) as cuts (cut) where cut between parent_place and place)"
        )
    pairs = [*zip(key.columns, key.parent_columns, strict=True)]
    old = ", ".join(
        f"{{'key': {literal(name)}, 'value': row_before[{literal(referenced)}]}}" for name, referenced in pairs
    )
    new = ", ".join(f"{{'key': {literal(name)}, 'value': seen[{literal(name)}]}}" for name in key.columns)
    return (
        f"with all_changes as (select *, {place} as place from binloom.row_changes where source_id = $source"
        "  and schema_name = $schema and table_name = $name and outcome = 'commit'),"
        " images as (select pk_values as row_key, place, row_before as seen, change_id from all_changes"
        " union all select pk_values_after, place, null, change_id from all_changes where pk_values_after is not null),"
        " first_images as (select * from images qualify row_number() over (partition by row_key order by place) = 1),"
        f" parents as (select *, {place} as parent_place from binloom.row_changes where source_id = $source"
        "  and schema_name = $parent_schema and table_name = $parent_name and outcome = 'commit'"
        f"  and (event_type = 'INSERT' or event_type = 'UPDATE' and ({_moved(key)}))),"
        " nearest as (select first_images.*, parents.* exclude (change_id), parents.change_id as parent_change"
        f"  from first_images inner join parents on {equal} and parent_place < first_images.place"
        "  where seen is not null"
        "  qualify row_number() over (partition by first_images.row_key order by parent_place desc) = 1),"
        f" rows_before as (select *, map_concat(seen, map_from_entries([{old}])) as held, [{new}] as new_values"
        f"  from nearest where event_type = 'UPDATE'{uncut})"
        f" select {_key_of(table, 'held')} as row_key, place, held, change_id, parent_change,"
        " false as is_deleted, new_values from rows_before"
    )


def _reach(
    connection: "DuckDBPyConnection", source_id: str, table: Table, keys: Sequence[ForeignKey], cuts: Sequence[Place]
) -> None:
    """Find the versions of rows that a parent ended, each with the first such parent, as `reached_rows`."""
    connection.execute(f"create or replace temp table row_versions as {_versions(cuts)}")
    parameters: dict[str, object] = {"source": source_id}
    for number, key in enumerate(keys):
        parameters |= {f"schema{number}": key.parent[0], f"name{number}": key.parent[1]}
    reached = " union all ".join(
        _reached(table, number, key, event_type, rule)
        for number, key in enumerate(keys)
        for event_type, rule in (("DELETE", key.delete_rule), ("UPDATE", key.update_rule))
        if rule in CASCADING
    )
    connection.execute(
        f"create or replace temp table reached_rows as select * from ({reached})"
        " qualify rank() over (partition by row_key, place order by parent_place) = 1",
        parameters,
    )


def _count_reached_by_selection(connection: "DuckDBPyConnection") -> int:
    row = connection.execute(
        "select count(*) from reached_rows inner join binloom.row_changes as changes"
        f" on changes.change_id = reached_rows.parent_change where {is_selected(is_whole=True)}"
    ).fetchone()
    return int(row[0]) if row else 0


def _versions(cuts: Sequence[Place]) -> str:
    """Return a query of the images of a table's rows: each from a change up to the next one of its key, or a cut."""
    following = "over (partition by row_key order by place, comes)"
    until = f"lead(place) {following}"
    if cuts:
        listed = ", ".join(f"({_wide(map(str, (*cut, 0, 0)))})" for cut in cuts)
        cut = f"(select min(cut) from (values {listed}) as cuts (cut) where cut > place)"
        until = f"least({until}, {cut})"
    place = _wide(ORDER.split(", "))
    return (
        "with starts_and_ends as ("
        f"select coalesce(pk_values_after, pk_values) as row_key, {place} as place, 1 as comes,"
        "  row_after as held, if(pk_values_after != pk_values, null, row_before) as before, change_id"
        "  from child_changes where row_after is not null"
        f" union all select pk_values, {place}, 0, null, row_before, change_id from child_changes"
        "  where row_after is null or pk_values_after != pk_values),"
        f" lasting as (select *, {until} as until, lead(change_id) {following} as until_change,"
        f"  lead(before) {following} as before_next from starts_and_ends)"
        " select row_key, place, held, change_id, until, until_change,"
        "  if(until_change in (select change_id from synthesized_changes), null, before_next) as before_next"
        " from lasting where comes = 1"
    )


def _reached(table: Table, number: int, key: ForeignKey, event_type: str, rule: str) -> str:
    """Return a query of the versions of rows that a deleted parent, or one with a new key, ended by a foreign key."""
    child = [f"versions.held[{literal(name)}]" for name in key.columns]
    parent = [f"parents.row_before[{literal(name)}]" for name in key.parent_columns]
    folds = [table.by_name[name].data_type in TEXTS | LABELS for name in key.columns]
    equal = " and ".join(
        f"{_folded(one)} = {_folded(other)}" if is_text else f"{one} = {other}"
        for one, other, is_text in zip(child, parent, folds, strict=True)
    )
    exact = " and ".join(f"{one} = {other}" for one, other in zip(child, parent, strict=True))
    place = _wide(f"parents.{name}" for name in ORDER.split(", "))
    is_deleted = event_type == "DELETE" and rule == "CASCADE"
    # The next change shows the row as it was, so the server did not change it, or it has logged how.
    unchanged = " and ".join(
        f"versions.before_next[{literal(name)}] = {one}" for name, one in zip(key.columns, child, strict=True)
    )
    was_left_alone = "versions.before_next is not null"
    if not is_deleted:
        was_left_alone += f" and {unchanged}"
    found = f"parents.event_type = '{event_type}'"
    if event_type == "UPDATE" and not _changes_keys(key):
        found += " and false"
    new = ["null::varchar" for _ in key.columns]
    if event_type == "UPDATE":
        found += f" and ({_moved(key)})"
        after = [f"parents.row_after[{literal(name)}]" for name in key.parent_columns]
        # The server treats the two keys as equal; only its storage engine distinguishes them.
        differs = " or ".join(
            f"{_folded(one)} is distinct from {_folded(other)}" if is_text else f"{one} is distinct from {other}"
            for one, other, is_text in zip(parent, after, folds, strict=True)
        )
        exact += f" and ({differs})"
        new = after if rule == "CASCADE" else new
    values = ", ".join(
        f"{{'key': {literal(name)}, 'value': {value}}}" for name, value in zip(key.columns, new, strict=True)
    )
    return (
        "select versions.*, parents.change_id as parent_change,"
        f" {place} as parent_place, coalesce({exact}, false) as is_exact,"
        f" {str(is_deleted).lower()} as is_deleted, [{values}] as new_values"
        " from row_versions as versions inner join binloom.row_changes as parents"
        f" on {equal} and {place} > versions.place and (versions.until is null or {place} < versions.until)"
        f" where parents.source_id = $source and parents.schema_name = $schema{number}"
        f" and parents.table_name = $name{number} and {found} and parents.outcome = 'commit'"
        f" and not coalesce({was_left_alone}, false)"
    )


def _folded(text: str) -> str:
    return f"lower(rtrim({text}, ' '))"


def _added(connection: "DuckDBPyConnection", table: Table) -> str:
    """Return a query of the changes of `reached_rows`, with all columns of `row_changes`."""
    columns = [row[0] for row in connection.execute("describe binloom.row_changes").fetchall()]
    replaced = {name: f"parents.{name}" for name in columns if name in _OF_PARENT}
    replaced |= {
        "change_id": "children.change_id || ' with ' || parents.change_id",
        # A child changes before its parent, so that the way back begins with the parent.
        "row_ordinal": "parents.row_ordinal - 1",
        "event_type": "if(is_deleted, 'DELETE', 'UPDATE')",
        "pk_values": "row_key",
        "pk_values_after": "key_after",
        "row_before": "held",
        "row_after": "changed_rows.row_after",
        "undecoded_columns": "null",
    }
    listed = ", ".join(f"{replaced.get(name, f'children.{name}')} as {name}" for name in columns)
    return (
        "with rows_once as (select row_key, place, any_value(held) as held, any_value(change_id) as change_id,"
        "  any_value(parent_change) as parent_change, bool_or(is_deleted) as is_deleted,"
        "  list_distinct(flatten(list(new_values))) as new_values from reached_rows group by row_key, place),"
        " images as (select *, if(is_deleted, null, map_concat(held, map_from_entries(new_values))) as row_after"
        "  from rows_once),"
        f" changed_rows as (select *, nullif({_key_of(table, 'row_after')}, row_key) as key_after from images)"
        f" select {listed} from changed_rows inner join child_changes as children using (change_id)"
        " inner join binloom.row_changes as parents on parents.change_id = changed_rows.parent_change"
    )


def _key_of(table: Table, image: str) -> str:
    """Return an expression of the primary key of an image, as `pk_values` has it."""
    parts = (f"{image}[{literal(name)}]" for name in table.logged_key)
    return " || '|' || ".join(f"replace(replace({part}, '\\', '\\\\'), '|', '\\|')" for part in parts)


def _wide(names: Iterable[str]) -> str:
    """Return a tuple of numbers: a place that compares in commit order."""
    return "(" + ", ".join(f"{name}::bigint" for name in names) + ")"


def _text(name: TableName) -> str:
    return ".".join(name)
