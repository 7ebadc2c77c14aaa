"""The rows of a cluster that questions about rows through time need, copied into DuckDB."""

from collections import defaultdict
from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from recover.sources.cluster.copies import Copies
from recover.sources.home.marts import MASKED_SOURCES, SERVER_STARTS
from recover.timeline.events import Table
from recover.timeline.history import WHOLE_NUMBER, key_of
from recover.timeline.table_log import MARTS

if TYPE_CHECKING:
    from sqlglot import exp

_TRANSACTION_COLUMNS: Final = (
    *("transaction_id", "source_id", "epoch", "file_sequence", "binlog_file", "start_pos", "end_pos", "gtid"),
    *("committed_at", "outcome", "xa_xid", "xa_end_transaction_id"),
)
_SELECTED_APART: Final = (
    *("row_changes", "transactions", "table_versions", "quarantined_row_events", MASKED_SOURCES[1]),
    SERVER_STARTS[1],
)
# The engines measure the distance of texts beyond ASCII differently; DuckDB chooses among these.
_NEAREST: Final = 20


def copy_row(copies: Copies, table: Table, key: str, as_of: str | None) -> None:
    """Copy the changes of a row, of all rows that exchanged keys with it, and the events of its source.

    Parameters
    ----------
    copies
        It has `table_versions`.
    table, key, as_of
        As a person gives them to `binloom history`.
    """
    from sqlglot import exp

    copy_events(copies, table.source_id, all_transactions=as_of is not None)
    text = key_of(copies.connection, table, key)
    known: set[str] = set()
    new = {text}
    while new:
        # All tables are searched, because a row may have been in a table of another name.
        _copy_keys(copies, table.source_id, new, known)
        known |= new
        moved = copies.connection.execute(
            "select distinct unnest([pk_values, pk_values_after]) from binloom.row_changes"
            " where pk_values_after is not null"
        )
        new = {row[0] for row in moved.fetchall()} - known
    if not copies.connection.execute("select 1 from binloom.row_changes limit 1").fetchall():
        _copy_nearest_keys(copies, table, text)
    # A transaction that did not commit makes other rows of its tables uncertain, too.
    is_needed: exp.Expr = exp.not_(exp.Coalesce(this=exp.column("outcome").eq("commit"), expressions=[exp.false()]))
    if (first := _first_changes(copies, table.source_id)) is not None:
        is_needed = exp.or_(is_needed, exp.column("change_id").isin(query=first))
    copies.add("row_changes", exp.and_(exp.column("source_id").eq(table.source_id), is_needed, *_is_other(known)))


def copy_table(copies: Copies, table: Table, as_of: str | None) -> None:
    """Copy all changes of a table and the events of its source; `copies` has `table_versions`."""
    copy_events(copies, table.source_id, all_transactions=as_of is not None)
    copy_changes(copies, table.source_id, [(table.schema_name, table.table_name)])


def copy_events(copies: Copies, source_id: str, *, all_transactions: bool) -> None:
    """Copy all that changes rows of a source without listing them, and its transactions.

    Parameters
    ----------
    all_transactions
        Copy more than the last transaction, prepared ones, those that did not commit, and those with an event that
        could not be decoded: such an event has a position and no transaction.
    """
    from sqlglot import exp

    of_source = exp.column("source_id").eq(source_id)
    for schema, name in MARTS:
        if name not in _SELECTED_APART:
            copies.add(name, of_source, schema=schema)
    masked = exp.select("source_id").distinct().from_("binlog_raw.table_maps")
    masked = masked.where(of_source, exp.column("masked_columns").is_(exp.null()).not_())
    copies.add_rows(masked, MASKED_SOURCES[1], schema=MASKED_SOURCES[0])
    starts = (
        exp.select("source_id", "epoch", "file_sequence", "binlog_file").distinct().from_("binlog_raw.binlog_files")
    )
    starts = starts.where(of_source, "created_at is not null", "not is_relay_log")
    copies.add_rows(starts, SERVER_STARTS[1], schema=SERVER_STARTS[0])
    # One row for each transaction, with what its events have in common; one for each event without a transaction.
    common = ("source_id", "epoch", "file_sequence", "binlog_file", "transaction_pos", "schema_name", "table_name")
    quarantined = exp.select(*common, "min(start_pos) as start_pos").from_("binloom.quarantined_row_events")
    groups = (*common, "if(transaction_pos is null, start_pos, null)")
    copies.add_rows(quarantined.where(of_source).group_by(*groups), "quarantined_row_events")
    transactions = exp.select(*_TRANSACTION_COLUMNS).from_("binloom.transactions").where(of_source)
    if all_transactions:
        copies.add_rows(transactions, "transactions")
        return
    ends = exp.select("xa_end_transaction_id").from_("binloom.transactions").where(of_source)
    ends = ends.where("xa_end_transaction_id is not null")
    special = transactions.where(
        exp.or_(
            "xa_end_transaction_id is not null",
            exp.column("outcome").isin("rollback", "none"),
            exp.column("transaction_id").isin(query=ends),
        )
    )
    undecoded = (
        exp.select("1")
        .from_("binloom.quarantined_row_events as undecoded")
        .where(
            "undecoded.transaction_pos is null",
            *(f"undecoded.{name} = transactions.{name}" for name in ("source_id", "epoch", "binlog_file")),
            "undecoded.start_pos >= transactions.start_pos",
            "undecoded.start_pos < transactions.end_pos",
        )
    )
    last = transactions.order_by("epoch desc", "file_sequence desc", "start_pos desc").limit(1)
    copied = exp.union(special, transactions.where(exp.Exists(this=undecoded)), distinct=True)
    copies.add_rows(exp.union(copied, exp.select("*").from_(last.subquery("last")), distinct=True), "transactions")


def copy_changes(copies: Copies, source_id: str, tables: Iterable[tuple[str, str]]) -> None:
    """Copy all changes of some tables, given by schema and name."""
    from sqlglot import exp

    by_schema: dict[str, list[str]] = defaultdict(list)
    for schema, name in tables:
        by_schema[schema].append(name)
    is_of_table = exp.or_(
        *(
            exp.and_(exp.column("schema_name").eq(schema), exp.column("table_name").isin(*names))
            for schema, names in sorted(by_schema.items())
        )
    )
    copies.add("row_changes", exp.and_(exp.column("source_id").eq(source_id), is_of_table))


def _copy_keys(copies: Copies, source_id: str, new: set[str], known: set[str]) -> None:
    """Copy the changes of rows with new keys, before or after the change, that none of the known keys has.

    Each query has one condition on one column, which statistics of files answer.
    """
    from sqlglot import exp

    of_source = exp.column("source_id").eq(source_id)
    others = _is_other(known)
    copies.add("row_changes", exp.and_(of_source, _has("pk_hash", new), *others))
    before_only, _ = _is_other(new)
    copies.add("row_changes", exp.and_(of_source, _has("pk_values_after", new), before_only, *others))


def _has(column: str, keys: set[str]) -> "exp.Expr":
    """Return the condition that a row had one of some keys before its change (pk_hash) or after (pk_values_after)."""
    from sqlglot import exp

    texts = sorted(sha256(key.encode()).hexdigest() if column == "pk_hash" else key for key in keys)
    return exp.column(column).isin(*texts)


def _is_other(keys: set[str]) -> "tuple[exp.Expr, exp.Expr]":
    """Return the conditions that a row had none of some keys before its change, and none after."""
    from sqlglot import exp

    if not keys:
        return exp.true(), exp.true()
    before, after = (
        exp.not_(exp.Coalesce(this=_has(column, keys), expressions=[exp.false()]))
        for column in ("pk_hash", "pk_values_after")
    )
    return before, after


def _first_changes(copies: Copies, source_id: str) -> "exp.Select | None":
    """Return a query of the first change of each table that was renamed: a name with earlier rows is not followed."""
    from sqlglot import exp

    renamed = copies.connection.execute(
        "select distinct lower(unnest(tables)) from binloom.schema_changes"
        " where list_bool_or(list_transform(actions, lambda one: starts_with(one, 'rename_table')))"
    )
    names = sorted(row[0] for row in renamed.fetchall())
    if not names:
        return None
    place = "struct(epoch, file_sequence, start_pos, payload_ordinal, row_ordinal)"
    query = exp.select(exp.maybe_parse(f"min_by(change_id, {place})", dialect="spark")).from_("binloom.row_changes")
    query = query.where(exp.column("source_id").eq(source_id))
    query = query.where(exp.func("lower", exp.func("concat", "schema_name", "'.'", "table_name")).isin(*names))
    return query.group_by("schema_name", "table_name")


def _copy_nearest_keys(copies: Copies, table: Table, key: str) -> None:
    """Copy the keys that are nearest to one without changes."""
    from sqlglot import exp

    number = f"abs(try_cast(pk_values as decimal(38, 0)) - {key})"
    text = exp.Levenshtein(this=exp.column("pk_values"), expression=exp.Literal.string(key))
    distance = exp.maybe_parse(number, dialect="spark") if WHOLE_NUMBER.fullmatch(key) else text
    names = ("source_id", "schema_name", "table_name", "pk_values")
    keys = exp.select(*names, exp.alias_(distance, "distance")).distinct().from_("binloom.row_changes")
    for column, value in zip(names, (table.source_id, table.schema_name, table.table_name), strict=False):
        keys = keys.where(exp.column(column).eq(value))
    keys = keys.where("pk_values is not null").order_by("distance nulls last", "pk_values").limit(_NEAREST)
    copies.add_rows(exp.select(*names).from_(keys.subquery("keys")), "row_changes")
