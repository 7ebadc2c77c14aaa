"""The changes of a table in commit order, row by row: from a connection with `row_changes` to `Change`.

DuckDB sorts, and writes to disk what does not fit into memory; Python sees the changes of one row at a time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from ingest.errors import UsageError
from recover.sources.engine import fetched, literal
from recover.undo.fold import Change, Row
from recover.undo.tables import Table, TableName

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ORDER: Final = "epoch, file_sequence, start_pos, payload_ordinal, row_ordinal"
"""The columns of commit order."""

# A map as two lists: DuckDB gives them to Python six times as fast.
_IMAGES: Final = (
    "map_keys(row_before), map_values(row_before), map_keys(row_after), map_values(row_after), undecoded_columns"
)
# A chain of rows that took each other's keys is in memory as a whole.
_LONGEST_CHAIN: Final = 100_000


class SelectionError(UsageError):
    """A selection of changes cannot be undone as it is."""


class EmptySelectionError(SelectionError):
    """No change is selected."""


@dataclass(frozen=True)
class Selected:
    """The selected changes, which temporary tables of the connection hold.

    Attributes
    ----------
    source_id
        Their source.
    transactions, changes
        How many of each.
    tables
        Their tables, with the number of selected changes.
    is_whole
        Whether they are whole transactions.
    """

    source_id: str
    transactions: int
    changes: int
    tables: dict[TableName, int]
    is_whole: bool


def select(
    connection: "DuckDBPyConnection", condition: str, parameters: object = None, *, rows_only: bool = False
) -> Selected:
    """Select the transactions that have a change for which a condition is true; with `rows_only` these changes alone.

    Raises
    ------
    SelectionError
        Nothing is selected, or changes of several sources, or changes that were not committed.
    """
    connection.execute(
        "create or replace temp table selected_changes as "
        f"select source_id, change_id, transaction_pos, {ORDER} from binloom.row_changes where {condition}",
        parameters,
    )
    sources = [
        row[0] for row in connection.execute("select distinct source_id from selected_changes order by 1").fetchall()
    ]
    if not sources:
        raise EmptySelectionError(
            "No change is selected, so there is nothing to undo.",
            hint="Look for it with `binloom query` and the same filters.",
        )
    if len(sources) > 1:
        raise SelectionError(
            f"Changes of several sources are selected: {', '.join(sources)}.",
            hint="Give --source: an undo is for one server.",
        )
    connection.execute(
        "create or replace temp table selected_transactions as "
        "select distinct source_id, epoch, file_sequence, transaction_pos from selected_changes"
    )
    return _described(connection, is_whole=not rows_only)


def add_transactions(connection: "DuckDBPyConnection", names: Iterable[str]) -> Selected:
    """Select further transactions, by their names in `Change.transaction`."""
    connection.execute("create or replace temp table further_transactions (name varchar)")
    connection.executemany("insert into further_transactions values (?)", [[name] for name in names])
    connection.execute(
        "insert into selected_transactions "
        "select distinct source_id, epoch, file_sequence, transaction_pos from binloom.row_changes as changes "
        "where source_id = (select any_value(source_id) from selected_transactions) "
        f"and {_transaction_name('changes')} in (select name from further_transactions) "
        "and (epoch, file_sequence, transaction_pos) not in "
        "(select (epoch, file_sequence, transaction_pos) from selected_transactions)"
    )
    return _described(connection, is_whole=True)


def _transaction_name(table: str) -> str:
    return f"coalesce({table}.gtid, {table}.binlog_file || ':' || {table}.transaction_pos)"


def is_selected(is_whole: bool, table: str = "changes") -> str:
    """Return the condition that a change of `row_changes` is selected."""
    if is_whole:
        return (
            f"exists (select 1 from selected_transactions as chosen where chosen.source_id = {table}.source_id"
            f" and chosen.epoch = {table}.epoch and chosen.file_sequence = {table}.file_sequence"
            f" and chosen.transaction_pos = {table}.transaction_pos)"
        )
    return f"exists (select 1 from selected_changes as chosen where chosen.change_id = {table}.change_id)"


def _described(connection: "DuckDBPyConnection", is_whole: bool) -> Selected:
    (source, transactions) = connection.execute(
        "select any_value(source_id), count(*) from selected_transactions"
    ).fetchone() or ("", 0)
    outcomes = connection.execute(
        f"select distinct outcome from binloom.row_changes as changes where {is_selected(is_whole)}"
        " and outcome is distinct from 'commit'"
    ).fetchall()
    if outcomes:
        raise SelectionError(
            f"A selected transaction was not committed: its outcome is {outcomes[0][0] or 'unknown'}.",
            hint="A transaction that did not commit changed nothing that an undo could take back.",
        )
    rows = connection.execute(
        f"select schema_name, table_name, count(*) from binloom.row_changes as changes where {is_selected(is_whole)}"
        " group by all order by all"
    ).fetchall()
    tables = {(schema, name): count for schema, name, count in rows}
    return Selected(source, transactions, sum(tables.values()), tables, is_whole)


def first_selected(connection: "DuckDBPyConnection", selected: Selected, table: TableName) -> tuple[Any, ...]:
    """Return the position of the first selected change of a table."""
    row = connection.execute(
        f"select {ORDER} from binloom.row_changes as changes where {is_selected(selected.is_whole)}"
        f" and schema_name = ? and table_name = ? order by {ORDER} limit 1",
        list(table),
    ).fetchone()
    assert row is not None
    return tuple(row)


class TableChanges:
    """The changes of the rows of a table that the selection touched, since its first selected change.

    Raises
    ------
    SelectionError
        Too many rows took each other's keys.
    """

    def __init__(self, connection: "DuckDBPyConnection", selected: Selected, table: Table) -> None:
        self._connection = connection
        self._table = table
        has_partial = connection.execute(
            f"select count(*) from binloom.row_changes as changes where {is_selected(selected.is_whole)}"
            " and schema_name = $schema and table_name = $name and ("
            "  (row_before is not null and cardinality(row_before) < $columns)"
            "  or (row_after is not null and cardinality(row_after) < $columns))",
            self._names | {"columns": len(table.stored)},
        ).fetchone()
        # A partial image lacks values; earlier images may have them.
        self._since_begin = bool(has_partial and has_partial[0])
        self._first = first_selected(connection, selected, table.name)
        self._is_selected = is_selected(selected.is_whole)
        self._source = selected.source_id
        self._place_rows()

    @property
    def _names(self) -> dict[str, str]:
        return {"schema": self._table.name[0], "name": self._table.name[1]}

    @property
    def _parameters(self) -> dict[str, object]:
        return {**self._names, "source": self._source}

    def _window(self) -> str:
        """Return a query of the committed changes of the table since the first selected one, with keys."""
        before, after = _identity(self._table, "row_before"), _identity(self._table, "row_after")
        key = f"if(event_type = 'INSERT', {after}, {before})"
        key_after = f"if(event_type = 'UPDATE', coalesce({after}, {before}), {key})"
        if self._table.primary_key:
            key, key_after = "pk_values", "coalesce(pk_values_after, pk_values)"
        since = "" if self._since_begin else f" and ({ORDER}) >= ({', '.join(map(str, self._first))})"
        return (
            f"select {ORDER}, change_id, {_transaction_name('changes')} as transaction_name,"
            f" {self._is_selected} as is_selected, event_type, {key} as key, {key_after} as key_after,"
            " row_before, row_after, undecoded_columns"
            " from binloom.row_changes as changes where source_id = $source and schema_name = $schema"
            f" and table_name = $name and outcome = 'commit'{since}"
        )

    def _place_rows(self) -> None:
        """Name the chain of rows that took each other's keys: rows of one chain are folded together."""
        moves = self._connection.execute(
            f"select key, key_after from ({self._window()}) where key != key_after", self._parameters
        )
        chains = _Chains()
        for key, key_after in fetched(moves):
            chains.join(key, key_after)
        self._connection.execute("create or replace temp table chained_keys (key varchar, chain varchar)")
        if chains.parents:
            import pyarrow as pa

            keys = list(chains.parents)
            chained = pa.table({"key": keys, "chain": [chains.first(key) for key in keys]})
            self._connection.register("chained", chained)
            self._connection.execute("insert into chained_keys select key, chain from chained")
            self._connection.unregister("chained")

    def chains(self) -> Iterator[list[Change]]:
        """Yield the changes of one row, or of rows that took each other's keys, in commit order."""
        found = self._connection.execute(
            f"with window_changes as ({self._window()}), placed as ("
            " select window_changes.*, coalesce(chained_keys.chain, window_changes.key) as chain"
            " from window_changes left join chained_keys on window_changes.key = chained_keys.key)"
            " select chain, change_id, transaction_name, is_selected, event_type, key, key_after,"
            f" {_IMAGES}"
            f" from placed where chain in (select chain from placed where is_selected) order by chain, {ORDER}",
            self._parameters,
        )
        for _, rows in groupby(fetched(found), key=lambda row: row[0]):
            chain = [_change(row) for row in rows]
            if len(chain) > _LONGEST_CHAIN:
                raise SelectionError(
                    f"{len(chain)} changes of {self._table.text} belong to rows that took each other's keys.",
                    hint="Select less, or undo it with --by-transaction.",
                )
            yield chain

    def selected_by_type(self) -> dict[str, int]:
        """Return the number of selected changes of each type that changed something."""
        rows = self._connection.execute(
            f"select event_type, count(*) from ({self._window()}) where is_selected"
            " and row_before is distinct from row_after group by all",
            self._parameters,
        ).fetchall()
        return {event_type: int(count) for event_type, count in rows}


def selected_changes_backwards(
    connection: "DuckDBPyConnection", selected: Selected
) -> Iterator[tuple[TableName, Change]]:
    """Yield the selected changes in the exact reverse of commit order."""
    backwards = ", ".join(f"{column} desc" for column in ORDER.split(", "))
    found = connection.execute(
        f"select schema_name, table_name, change_id, {_transaction_name('changes')}, event_type,"
        f" {_IMAGES} from binloom.row_changes as changes where {is_selected(selected.is_whole)}"
        f" and source_id = ? and outcome = 'commit' order by {backwards}",
        [selected.source_id],
    )
    for schema, name, *facts in fetched(found):
        yield (schema, name), _change(("", facts[0], facts[1], True, facts[2], "", "", *facts[3:]))


def _change(row: tuple[Any, ...]) -> Change:
    _, change_id, transaction, selected, event_type, key, key_after, *images, undecoded = row
    return Change(
        change_id, transaction, selected, event_type, key, key_after,
        _row(images[0], images[1]), _row(images[2], images[3]), undecoded or (),
    )  # fmt: skip


def _row(names: list[str] | None, values: list[str | None] | None) -> Row | None:
    return None if names is None or values is None else dict(zip(names, values, strict=True))


def _identity(table: Table, image: str) -> str:
    """Return an expression that is equal only for images of the same row, or of equal rows if there is no key."""
    if table.row_key:
        # A partial image lacks key columns that did not change: the expression is NULL then.
        joined = " || ' | ' || ".join(f"replace({image}[{literal(name)}], '|', '||')" for name in table.row_key)
        return f"({joined})"
    parts = (f"coalesce('v' || replace({image}[{literal(column.name)}], '|', '||'), 'n')" for column in table.stored)
    return f"if({image} is null, null, md5(concat_ws(' | ', {', '.join(parts)})))"


class _Chains:
    """Keys that rows moved between, as disjoint sets."""

    def __init__(self) -> None:
        self.parents: dict[str, str] = {}

    def first(self, key: str) -> str:
        """Return the key that stands for the set of a key."""
        root = key
        while (parent := self.parents.get(root, root)) != root:
            root = parent
        while key != root:
            self.parents[key], key = root, self.parents.get(key, root)
        return root

    def join(self, one: str, other: str) -> None:
        """Make one set of the sets of two keys."""
        first, second = self.first(one), self.first(other)
        self.parents.setdefault(first, first)
        self.parents[second] = first
