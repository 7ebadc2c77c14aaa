"""The changes of a table in commit order, row by row: from a connection with `row_changes` to `Change`.

DuckDB sorts, and writes to disk what does not fit into memory. The rows of many chains are one Arrow batch, which costs
little to make and to send to another process; only there do they become Python's.
"""

import hashlib
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import accumulate, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from recover.selection.filters import key_text
from recover.sources.engine import answer, literal, registered
from recover.timeline.baselines import Baseline
from recover.timeline.events import Place
from recover.undo.rows.fold import Change, Row
from recover.undo.select.beginnings import Beginnings
from recover.undo.select.overlay import LAYERS
from recover.undo.select.selected import ORDER, TRANSACTION_NAME, Selected, SelectionError, first_selected, is_selected
from recover.undo.tables.table import Table, TableName

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection


# A map as its names in one text and its values in a list: most rows have the same names, which are split once.
_NAMES, _VALUES = "array_to_string(map_keys({}), chr(0))", "map_values({})"
_IMAGES: Final = {
    "before_names": (_NAMES, "row_before"),
    "before_values": (_VALUES, "row_before"),
    "after_names": (_NAMES, "row_after"),
    "after_values": (_VALUES, "row_after"),
}
_SECONDS: Final = "floor(epoch(event_timestamp))::bigint"
# A chain of rows that took each other's keys is in memory as a whole.
_LONGEST_CHAIN: Final = 100_000
_ROWS_AT_ONCE: Final = 2000
# Characters of a value for people.
_SHOWN: Final = 60


def with_split_images(connection: "DuckDBPyConnection") -> str:
    """Return a relation with the columns of `row_changes`, and each image as names in one text and a list of values.

    Decoded files have their images in this form, and make maps of them only when these are asked for.
    """
    # Rows that cascades add, and rows of altered tables as they are now, are in `row_changes` alone.
    has_lists = connection.execute(
        "select count(*) from information_schema.tables where (table_schema, table_name) = ('main', 'row_images')"
        " and not exists (select 1 from information_schema.tables"
        f" where table_name in {LAYERS})"
    ).fetchone()
    if has_lists is not None and has_lists[0]:
        return "row_images"
    split = ", ".join(f"{part.format(row)} as {name}" for name, (part, row) in _IMAGES.items())
    return f"(select *, {split} from binloom.row_changes)"


class TableChanges:
    """The changes of the rows of a table that the selection touched, since its first selected change.

    If images of selected changes lack columns, the changes before are there too, and rows of a baseline as inserts.

    Parameters
    ----------
    beginnings
        Where earlier images still show the rows; None: in the whole log.
    uncertain
        Columns that may change without a trace in the log, so that earlier images do not show them.

    Raises
    ------
    SelectionError
        Images of a selected change lack the key of its row.
    """

    def __init__(
        self,
        connection: "DuckDBPyConnection",
        selected: Selected,
        table: Table,
        beginnings: Beginnings | None = None,
        uncertain: Collection[str] = (),
    ) -> None:
        self._connection = connection
        self._table = table
        self._rows_of_log = with_split_images(connection)
        self._uncertain: Collection[str] = ()
        has_partial = connection.execute(
            f"select count(*) from {self._rows_of_log} as changes where {is_selected(selected.is_whole)}"
            " and schema_name = ? and table_name = ?"
            f" and least(len(before_values), len(after_values)) < {len(table.stored)}",
            list(table.name),
        ).fetchone()
        self._first = first_selected(connection, selected, table.name)
        self._since: tuple[int, ...] | None = self._first
        self.baseline: Baseline | None = None
        if has_partial is not None and has_partial[0]:
            # A partial image lacks values; earlier images may have them.
            begin = beginnings.before(table.name, Place(*self._first[:3])) if beginnings is not None else None
            self._since = None if begin is None else begin.since
            self._uncertain = uncertain
            # Images of a table without a key must be whole for its rows to be found.
            self.baseline = begin.baseline if begin is not None and table.row_key else None
        self._is_selected = is_selected(selected.is_whole)
        self._source = selected.source_id
        self._place_rows()

    def _window(self) -> str:
        """Return a query of the committed changes of the table since the first selected one, with keys."""
        schema, name = self._table.name
        key, key_after = keys_of_rows(self._table)
        since = ""
        if self._since is not None:
            order = ", ".join(ORDER.split(", ")[: len(self._since)])
            since = f" and ({order}) >= ({', '.join(map(str, self._since))})"
        return (
            f"select {ORDER}, change_id, {TRANSACTION_NAME} as transaction_name,"
            f" {self._is_selected} as is_selected, event_type, {key} as key, {key_after} as key_after,"
            f" {', '.join(self._images())}, undecoded_columns, {_SECONDS if self._table.stamps else 'null'} as seconds"
            f" from {self._rows_of_log} as changes where source_id = {literal(self._source)}"
            f" and schema_name = {literal(schema)} and table_name = {literal(name)} and outcome = 'commit'{since}"
        )

    def _images(self) -> Iterator[str]:
        """Yield the names and values of both images, without uncertain columns before the first selected change."""
        for name, (part, row) in _IMAGES.items():
            yield f"{part.format(self._certain(row))} as {name}" if self._uncertain else name

    def _certain(self, image: str) -> str:
        """Return an expression of an image, without uncertain columns before the first selected change."""
        if not self._uncertain:
            return image
        names = ", ".join(map(literal, self._uncertain))
        known = f"map_from_entries(list_filter(map_entries({image}), lambda one: one.key not in ({names})))"
        is_before = f"({ORDER}) < ({', '.join(map(str, self._first))})"
        return f"case when {image} is not null and {is_before} then {known} else {image} end"

    def _rows_of_baseline(self) -> str:
        """Return a query of the rows of the baseline that have changes, with the columns of the window."""
        assert self.baseline is not None
        key = "pk_values" if self._table.primary_key else _identity(self._table, "row_after")
        after = self._certain("row_after")
        return (
            f"select {ORDER}, change_id, change_id as transaction_name, false as is_selected, event_type,"
            f" {key} as key, {key} as key_after, null as before_names, null as before_values,"
            f" {_NAMES.format(after)} as after_names, {_VALUES.format(after)} as after_values,"
            f" null as undecoded_columns, null as seconds from ({self.baseline.rows()})"
            f" where {key} in (select key from ({self._window()}))"
        )

    def _place_rows(self) -> None:
        """Name the chain of rows that took each other's keys: rows of one chain are folded together."""
        moves = answer(
            self._connection,
            f"select key, key_after, change_id from ({self._window()})"
            " where key != key_after or (is_selected and (key is null or key_after is null))",
        )
        chains = _Chains()
        for key, key_after, change_id in moves.rows:
            if key is None or key_after is None:
                raise SelectionError(
                    f"The images of change {change_id} of {self._table.text} lack columns of the key"
                    f" ({', '.join(self._table.row_key)}), so its row is not known.",
                    hint="Leave out this change with --rows-only and --where, and undo it by hand.",
                )
            chains.join(key, key_after)
        self._connection.execute("create or replace table chained_keys (key varchar, chain varchar)")
        if chains.parents:
            import pyarrow as pa

            keys = list(chains.parents)
            chained = pa.table({"key": keys, "chain": [chains.first(key) for key in keys]})
            with registered(self._connection, "chained", chained):
                self._connection.execute("insert into chained_keys select key, chain from chained")

    def batches(self) -> "Iterator[pa.RecordBatch]":
        """Yield the rows of some chains at a time, which `chains_of` reads.

        Raises
        ------
        SelectionError
            A chain is too long.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        waiting: pa.RecordBatch | None = None
        for rows in self._rows():
            waiting = rows if waiting is None else pa.concat_batches([waiting, rows])
            # The next rows may belong to the last chain.
            chains = waiting.column(0)
            end = pc.index(chains, chains[-1]).as_py()
            if end:
                yield waiting.slice(0, end)
                waiting = waiting.slice(end)
            if waiting.num_rows > _LONGEST_CHAIN:
                raise SelectionError(
                    f"More than {_LONGEST_CHAIN} changes of {self._table.text} belong to rows that took each"
                    " other's keys.",
                    hint="Select less, or undo it with --by-transaction.",
                )
        if waiting is not None:
            yield waiting

    def _rows(self) -> "Iterator[pa.RecordBatch]":
        """Yield the rows of the chains that have a selected change, sorted by chain and in commit order."""
        changes = self._window()
        if self.baseline is not None:
            changes = f"{changes} union all by name {self._rows_of_baseline()}"
        # The rows of a query with parameters would be in memory as a whole. A cursor, as in `engine.answer`.
        found = self._connection.cursor().sql(
            f"with window_changes as ({changes}), placed as ("
            " select window_changes.*, coalesce(chained_keys.chain, window_changes.key) as chain"
            " from window_changes left join chained_keys on window_changes.key = chained_keys.key)"
            " select chain, change_id, transaction_name, is_selected, event_type, key, key_after,"
            f" {', '.join(_IMAGES)}, undecoded_columns, seconds"
            f" from placed where chain in (select chain from placed where is_selected) order by chain, {ORDER}"
        )
        for batch in found.to_arrow_reader(_ROWS_AT_ONCE):
            for first in range(0, batch.num_rows, _ROWS_AT_ONCE):
                yield batch.slice(first, _ROWS_AT_ONCE)

    def selected_by_type(self) -> dict[str, int]:
        """Return the number of selected changes of each type that changed something."""
        rows = self._connection.execute(
            f"select event_type, count(*) from ({self._window()}) where is_selected"
            " and (before_names, before_values) is distinct from (after_names, after_values) group by all"
        ).fetchall()
        return {event_type: int(count) for event_type, count in rows}


def selected_changes_backwards(
    connection: "DuckDBPyConnection", selected: Selected
) -> Iterator[tuple[TableName, Change]]:
    """Yield the selected changes in the reverse of commit order, those of `cascade_levels` after their parents."""
    columns = ORDER.split(", ")
    backwards = [f"coalesce(levels.{column}, changes.{column}) desc" for column in columns]
    backwards += ["coalesce(levels.level, 0)", *(f"changes.{column} desc" for column in columns)]
    found = answer(
        connection,
        f"select schema_name, table_name, change_id, {TRANSACTION_NAME}, event_type,"
        f" {', '.join(_IMAGES)}, undecoded_columns, null as seconds"
        f" from {with_split_images(connection)} as changes left join cascade_levels as levels using (change_id)"
        f" where {is_selected(selected.is_whole)}"
        f" and source_id = ? and outcome = 'commit' order by {', '.join(backwards)}",
        [selected.source_id],
    )
    for schema, name, *facts in found.rows:
        if (schema, name) in selected.sequences:
            continue
        yield (schema, name), _change(("", facts[0], facts[1], True, facts[2], "", "", *facts[3:]))


def chains_of(batch: "pa.RecordBatch") -> Iterator[list[Change]]:
    """Yield the changes of one row, or of rows that took each other's keys, in commit order."""
    rows = zip(*map(_values, batch.columns), strict=True)
    for _, chain in groupby(rows, key=itemgetter(0)):
        yield [_change(row) for row in chain]


def _values(column: "pa.Array") -> list[Any]:
    """Return the values of a column in Python; of a list, all elements are converted at once."""
    import pyarrow as pa

    if not pa.types.is_list(column.type):
        return list(column.to_numpy(zero_copy_only=False).tolist())
    elements = column.flatten().to_numpy(zero_copy_only=False).tolist()
    lengths = column.value_lengths().to_pylist()
    ends = accumulate(length or 0 for length in lengths)
    return [None if length is None else elements[end - length : end] for length, end in zip(lengths, ends, strict=True)]


def _change(row: tuple[Any, ...]) -> Change:
    _, change_id, transaction, selected, event_type, key, key_after, *images, undecoded, seconds = row
    return Change(
        change_id, transaction, selected, event_type, key, key_after,
        _row(images[0], images[1]), _row(images[2], images[3]), undecoded or (), seconds,
    )  # fmt: skip


def _row(names: str | None, values: list[str | None] | None) -> Row | None:
    return None if names is None or values is None else dict(zip(_names(names), values, strict=True))


@lru_cache(maxsize=1024)
def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split("\0")) if text else ()


def keys_of_rows(table: Table) -> tuple[str, str]:
    """Return expressions of the key of a row before and after a change; equal for an INSERT and for a DELETE."""
    if table.primary_key:
        return "pk_values", "coalesce(pk_values_after, pk_values)"
    key = f"if(event_type = 'INSERT', {_identity(table, 'row_after')}, {_identity(table, 'row_before')})"
    updated = _identity(table, "row_after", unless_absent="row_before")
    return key, f"if(event_type = 'UPDATE', {updated}, {key})"


def _identity(table: Table, image: str, unless_absent: str | None = None) -> str:
    """Return an expression that is equal only for images of the same row, or of equal rows if there is no key.

    It is NULL if an image lacks columns of the key, and those of `unless_absent` too.
    """
    if table.row_key:
        images = [image] if unless_absent is None else [image, unless_absent]
        values = (f"coalesce({', '.join(f'{one}[{literal(name)}]' for one in images)})" for name in table.row_key)
        joined = " || ' | ' || ".join(f"replace({value}, '|', '||')" for value in values)
        return f"({joined})"
    parts = (f"coalesce('v' || replace({image}[{literal(column.name)}], '|', '||'), 'n')" for column in table.stored)
    return f"if({image} is null, null, md5(concat_ws(' | ', {', '.join(parts)})))"


def key_of_row(table: Table, row: Row) -> str:
    """Return the key of a row with all values, as `keys_of_rows` has it."""
    if table.primary_key:
        return key_text(str(row[name]) for name in table.logged_key)
    if table.row_key:
        return " | ".join(str(row[name]).replace("|", "||") for name in table.row_key)
    values = (row[column.name] for column in table.stored)
    parts = ("n" if value is None else f"v{str(value).replace('|', '||')}" for value in values)
    return hashlib.md5(" | ".join(parts).encode(), usedforsecurity=False).hexdigest()


def label_of_row(table: Table, row: Row) -> str:
    """Return a row for people: its key, or the beginnings of all values of a table without a key."""
    if table.row_key:
        return f"row {key_of_row(table, row)}"
    shown = ("NULL" if value is None else str(value)[:_SHOWN] for value in row.values())
    return f"row {key_text(shown)}"


class _Chains:
    """Keys that rows moved between, as disjoint sets."""

    def __init__(self) -> None:
        self.parents: dict[str, str] = {}

    def first(self, key: str) -> str:
        """Return the representative key of the set that a key belongs to."""
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
