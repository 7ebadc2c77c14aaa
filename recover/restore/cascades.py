"""Rows that a foreign key may have changed without the log.

An engine that runs a cascade itself logs the change of the parent only. A child that it removed, emptied or moved would
still have the old value of the key. So if no row of the child has a value that a parent lost since the dump, no cascade
has changed a row.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ingest.ddl.actions import INACTIVE_RULES
from recover.restore.dumped_log import DumpedLog
from recover.restore.refusal import RestoreRefusedError
from recover.sources.engine import has_rows, literal, quoted, registered
from recover.sources.files.file_log import SOURCE
from recover.timeline.as_of import Moment
from recover.timeline.cascades import EQUAL_LETTERS
from recover.timeline.events import Effect
from recover.timeline.events import Table as LoggedTable
from recover.timeline.table_log import events_of
from recover.undo.rows.literals import TEXTS
from recover.undo.tables.table import Column, ForeignKey, Table, TableName

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

_KEEPING: Final = INACTIVE_RULES | {"SET NULL", "SET DEFAULT"}
"""Rules for the deletion of a parent that leave its children in their table."""
_SCRATCH: Final = "Restore the dump and the log on a scratch server; it runs the foreign keys."
_NOT_LOGGED: Final = "which not every server logs"


def is_cascading(key: ForeignKey) -> bool:
    """Return whether a foreign key changes rows of its table when rows of its parent change."""
    return not {key.update_rule.upper(), key.delete_rule.upper()} <= INACTIVE_RULES


def cascading_parents(tables: Iterable[TableName], keys: Iterable[ForeignKey]) -> set[TableName]:
    """Return the tables whose changes may change rows of some tables, directly or through others."""
    found: set[TableName] = set()
    known, of_table = set(tables), [key for key in keys if is_cascading(key)]
    while added := {key.parent for key in of_table if key.table in known} - found:
        found |= added
        known |= added
    return found


@dataclass(frozen=True)
class LostKeys:
    """The values that parents of a foreign key lost since the dump, in a table of the connection.

    Attributes
    ----------
    undecided
        Places of the columns with texts of which only the server knows whether its collation takes them for equal.
    """

    connection: "DuckDBPyConnection"
    key: ForeignKey
    name: str
    undecided: Collection[int]

    def assert_unused(self, rows: "pa.Table") -> None:
        """Refuse rows that have such a value, or may have one."""
        places = range(len(self.key.columns))
        equal = [f"child.value_{place} = lost.value_{place}" for place in places]
        maybe = [
            f"({one} or {_may_be_equal(place)})" if place in self.undecided else one for place, one in enumerate(equal)
        ]
        table, parent = ".".join(self.key.table), ".".join(self.key.parent)
        with registered(self.connection, "batch", rows):
            if self._finds("child", self.name, equal):
                raise RestoreRefusedError(
                    f"Rows of {parent} were deleted, or got another key, and rows of {table} refer to them: foreign key"
                    f" {self.key.name} may have changed these rows, {_NOT_LOGGED}.",
                    hint=_SCRATCH,
                )
            # Each pair of texts is compared. Few texts are outside ASCII, and one of each pair is.
            odd_child, odd_lost = "(select * from child where is_odd)", f"(select * from {self.name} where is_odd)"
            if self.undecided and (self._finds(odd_child, self.name, maybe) or self._finds("child", odd_lost, maybe)):
                raise RestoreRefusedError(
                    f"Rows of {parent} were deleted, or got another key, and rows of {table} may refer to them: only"
                    f" the server knows which texts outside ASCII its collation takes for equal. Foreign key"
                    f" {self.key.name} may have changed these rows, {_NOT_LOGGED}.",
                    hint=_SCRATCH,
                )

    def _finds(self, child: str, lost: str, conditions: Iterable[str]) -> bool:
        columns = _compared([quoted(name) for name in self.key.columns], self.undecided)
        found = self.connection.execute(
            f"""with child as materialized (select distinct {columns} from batch)
            select 1 from {child} as child, {lost} as lost where {" and ".join(conditions)} limit 1"""
        ).fetchall()
        return bool(found)


def lost_keys(source: DumpedLog, table: Table, keys: Iterable[ForeignKey], moment: Moment) -> Iterator[LostKeys]:
    """Yield the values that parents of a table lost, by foreign key; only of keys whose parents lost any.

    All changes up to the moment count, also those before the dump. A value too many refuses a table that could be
    restored; the ends of prepared transactions need not be looked for.
    """
    connection = source.log.connection
    known = [key for key in keys if is_cascading(key)]
    for key in (one for one in known if one.table == table.name):
        _assert_shown(source, key, moment)
        for above in _above(key, known):
            _assert_shown(source, above, moment)
            if has_rows(connection, f"({_lost(above, moment, ())})"):
                raise RestoreRefusedError(
                    f"Rows of {'.'.join(above.parent)} were deleted, or got another key. Foreign keys may then have"
                    f" changed rows of {'.'.join(above.table)} and of {table.text}, {_NOT_LOGGED}.",
                    hint=_SCRATCH,
                )
        undecided = [place for place, name in enumerate(key.columns) if _is_undecided(table.by_name.get(name))]
        lost = quoted(f"values lost by {key.name} of {table.text}")
        connection.execute(f"create or replace table {lost} as {_lost(key, moment, undecided)}").fetchall()
        if not has_rows(connection, lost):
            continue
        if not {*key.columns} <= {*table.stored_names}:
            raise RestoreRefusedError(
                f"Rows of {'.'.join(key.parent)} were deleted, or got another key. Foreign key {key.name} of"
                f" {table.text}, whose columns the server computes, may have changed rows, {_NOT_LOGGED}.",
                hint=_SCRATCH,
            )
        yield LostKeys(connection, key, lost, undecided)


def _above(key: ForeignKey, known: Iterable[ForeignKey]) -> Iterable[ForeignKey]:
    """Return the foreign keys that may delete rows of the parent, or change their key, through any number of tables.

    Those of the restored table itself are left out: its own rows show what they did.
    """
    found: dict[ForeignKey, None] = {}
    lower = [key]
    while lower:
        below = lower.pop()
        above = [
            one
            for one in known
            if one.table == below.parent and one.table != key.table and one not in found and _carries(one, below)
        ]
        found |= dict.fromkeys(above)
        lower += above
    return found


def _carries(above: ForeignKey, below: ForeignKey) -> bool:
    """Return whether what one foreign key does to its table can make another one change rows."""
    changed, referenced = ({name.lower() for name in names} for names in (above.columns, below.parent_columns))
    return above.delete_rule.upper() not in _KEEPING or not changed.isdisjoint(referenced)


def _assert_shown(source: DumpedLog, key: ForeignKey, moment: Moment) -> None:
    """Refuse a foreign key if the log does not show all values that its parent lost."""
    table, parent = ".".join(key.table), ".".join(key.parent)
    if not source.has_read(key.parent):
        raise RestoreRefusedError(
            f"Foreign key {key.name} of {table} is not in the dump, and may have changed rows without the log.",
            hint=f"Name {parent}, too; or give a dump that has the foreign key.",
        )
    unseen = f"Foreign key {key.name} may have changed rows of {table}, {_NOT_LOGGED}"
    hidden = (Effect.OBSCURES, Effect.REPLACES)
    # Those of the restored table itself have consequences of their own.
    is_own = key.parent == key.table
    events = [] if is_own else events_of(source.log.connection, LoggedTable(SOURCE, *key.parent), moment.place)
    if event := next((one for one in events if one.effect in hidden and one.place >= source.place), None):
        raise RestoreRefusedError(
            f"{unseen}: the log does not show which rows of {parent} were deleted, or got another key, because of"
            f" {event}.",
            hint=_SCRATCH,
        )
    if has_rows(source.log.connection, f"({_changes(key, moment)}) where {_lacks(key)}"):
        raise RestoreRefusedError(
            f"{unseen}: the log lacks {', '.join(key.parent_columns)} of rows of {parent} that were deleted, or got"
            " another key.",
            hint=f"{_SCRATCH} With binlog_row_image=FULL, later logs have these columns.",
        )


def _changes(key: ForeignKey, moment: Moment) -> str:
    """Return a query of the changes up to a moment that may have taken a value from the parent."""
    schema, table = map(literal, key.parent)
    named = " or ".join(f"map_contains(row_after, {literal(name)})" for name in key.parent_columns)
    place = ", ".join(map(str, moment.place))
    return f"""select row_before, row_after, event_type from binloom.row_changes
        where source_id = {literal(SOURCE)} and schema_name = {schema} and table_name = {table}
            and outcome != 'rollback' and [epoch, file_sequence, start_pos] < [{place}]
            and (event_type = 'DELETE' or (event_type = 'UPDATE' and ({named})))"""


def _lacks(key: ForeignKey) -> str:
    return " or ".join(f"map_contains(row_before, {literal(name)}) is not true" for name in key.parent_columns)


def _lost(key: ForeignKey, moment: Moment, undecided: Collection[int]) -> str:
    """Return a query of the values that rows of the parent lost. No row refers to NULL."""
    before = [f"row_before[{literal(name)}]" for name in key.parent_columns]
    changed = " or ".join(
        f"(map_contains(row_after, {literal(name)}) and {one} is distinct from row_after[{literal(name)}])"
        for name, one in zip(key.parent_columns, before, strict=True)
    )
    return f"""select distinct {_compared(before, undecided)} from ({_changes(key, moment)})
        where (event_type = 'DELETE' or {changed}) and {" and ".join(f"{one} is not null" for one in before)}"""


def _is_undecided(column: Column | None) -> bool:
    """Return whether only the server knows which texts of a column are equal."""
    if column is None or column.data_type not in TEXTS:
        return False
    return not (column.collation or "").endswith("_bin") and column.character_set != "binary"


def _compared(values: list[str], undecided: Collection[int]) -> str:
    """Return the columns by which the values of a key are compared.

    A text outside ASCII may be equal to one that is as long as nobody knows. Only its ASCII beginning and end tell that
    it is another text, without the characters beside the others: these may belong to them.
    """
    found = [f"{comparable(value)} as value_{place}" for place, value in enumerate(values)]
    for place in undecided:
        text = f"lower(rtrim({values[place]}))"
        is_odd = _is_odd(values[place])
        head, tail = (f"regexp_extract({text}, '{pattern}')" for pattern in ("^[ -~]*", "[ -~]*$"))
        found.append(f"case when {is_odd} then left({head}, -1) else {head} end as head_{place}")
        found.append(f"case when {is_odd} then right({tail}, -1) else {tail} end as tail_{place}")
    odd = " or ".join(_is_odd(values[place]) for place in undecided)
    return ", ".join([*found, f"coalesce({odd or 'false'}, false) as is_odd"])


def _is_odd(text: str) -> str:
    return f"regexp_matches({text}, '[^ -~]')"


def _may_be_equal(place: int) -> str:
    """Return the condition that nothing tells two texts apart, if one of them is outside ASCII."""
    head, tail = (f"child.{name}_{place}, lost.{name}_{place}" for name in ("head", "tail"))
    swapped_head, swapped_tail = (f"lost.{name}_{place}, child.{name}_{place}" for name in ("head", "tail"))
    return f"((starts_with({head}) or starts_with({swapped_head})) and (suffix({tail}) or suffix({swapped_tail})))"


def comparable(text: str) -> str:
    """Return an expression that is equal for texts that a collation may take for equal."""
    return f"translate(strip_accents(lower(rtrim({text}))), {', '.join(map(literal, EQUAL_LETTERS))})"
