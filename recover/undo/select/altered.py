"""Row changes of tables that were altered or renamed since, with the columns and the name that the tables have now.

After `carry`, the rows of these tables in `row_changes` are as the server would have logged them under the present
definition. A column that a statement added has its value in all rows, a dropped one is gone, and a value whose text
under the new type is unknown is left out of its image.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from ingest.words import counted
from recover.sources.engine import registered
from recover.sources.log import Log
from recover.timeline.alterations import Added, Alteration, alteration
from recover.timeline.columns import Columns
from recover.timeline.conversions import UNKNOWN as NOT_TOLD
from recover.timeline.events import Image, Place
from recover.timeline.events import Table as LoggedTable
from recover.timeline.table_log import events_of
from recover.undo.rows.fold import UNKNOWN, Row
from recover.undo.select.overlay import lay_over
from recover.undo.select.selected import Selected, described, first_place, first_selected, is_selected
from recover.undo.tables.definitions import Definitions, history_of
from recover.undo.tables.table import Table, TableName

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from ingest.ddl.actions import Action, Column
    from ingest.ddl.history import Place as Position
    from ingest.landing.schema_history import SchemaHistory

_ALTERING: Final = (
    *("add_column", "drop_column", "modify_column", "rename_column", "add_primary_key", "drop_primary_key"),
    "convert_character_set",
)
_IMAGES: Final = ("row_before", "row_after")


@dataclass(frozen=True)
class Statement:
    """A statement that altered or renamed a table; `new_name` is its name afterwards."""

    place: Place
    binlog_file: str
    name: TableName
    new_name: TableName
    steps: "tuple[Action, ...]"

    def __str__(self) -> str:
        return f"{self.steps[0].statement_type} at {self.binlog_file}:{self.place.pos}"

    @property
    def is_rename(self) -> bool:
        """Whether the table has another name afterwards."""
        return self.new_name != self.name


@dataclass
class Altered:
    """The tables of a selection that were altered since.

    Attributes
    ----------
    statements
        By their present names, the statements whose effect the rows have.
    problems
        Why some cannot be carried, each once, as a sentence without its end.
    dropped
        The columns with changed values that the statements dropped, in words.
    warnings
        What an INSERT leaves to the server, in words.
    defaults
        By table, the columns that an INSERT leaves to the server, with the values; `UNKNOWN` if they are unknown.
    """

    statements: dict[TableName, tuple[Statement, ...]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    defaults: dict[TableName, Row] = field(default_factory=dict)

    def are_carried_over(self, table: Table, place: Place) -> bool:
        """Return whether the rows of a table have the effect of the statement at a place."""
        return any(one.place == place for one in self.statements.get(table.name, ()))

    def defined(self, definitions: Definitions) -> Definitions:
        """Return definitions that know which columns an INSERT leaves to the server."""
        tables = dict(definitions.tables)
        for name, defaults in self.defaults.items():
            if name in tables:
                tables[name] = replace(tables[name], defaults=defaults)
        return replace(definitions, tables=tables)


def carry(
    log: Log, selected: Selected, definitions: Definitions, around: Collection[TableName] = ()
) -> tuple[Altered, Selected]:
    """Give the rows of altered tables their present columns; return what was done, and the selection with new names.

    `around` are other tables whose rows cascades of the selection may have changed, under their present names.
    """
    altered = Altered()
    if log.copies is not None:
        return altered, selected
    history = history_of(log, selected.source_id)
    actions = _logged_actions(history)
    images = _Images(log.connection, selected)
    of_all = first_place(log.connection, selected)
    firsts = {name: Place(*first_selected(log.connection, selected, name)[:3]) for name in selected.tables}
    for name, first in (firsts | {_name_at(actions, name, of_all): of_all for name in around}).items():
        statements = [*_statements(history, actions, name, first)]
        new_name = statements[-1].new_name if statements else name
        table = definitions.tables.get(new_name)
        if not statements or table is None:
            continue
        if reason := _unfollowed(log, selected.source_id, statements, first, selected):
            altered.problems.append(reason)
            continue
        carried = _Carried(history, name, table, statements)
        altered.problems += carried.problems
        if carried.problems:
            continue
        altered.statements[new_name] = tuple(statements)
        images.carry(carried)
        altered.problems += [*carried.problems, *carried.losses]
        altered.dropped += carried.dropped
        altered.warnings += carried.warnings
        altered.defaults[new_name] = carried.defaults
    if images.place():
        selected = described(log.connection, selected.is_whole)
    return altered, selected


def present_names(log: Log, selected: Selected) -> set[TableName]:
    """Return the names that the tables of a selection have now; those of a cluster are taken to be the same."""
    if log.copies is not None:
        return {*selected.tables}
    history, found = history_of(log, selected.source_id), set[TableName]()
    actions = _logged_actions(history)
    for name in selected.tables:
        first = Place(*first_selected(log.connection, selected, name)[:3])
        for statement in _statements(history, actions, name, first):
            name = statement.new_name
        found.add(name)
    return found


def _name_at(actions: "Sequence[tuple[Position, Action]]", name: TableName, place: Place) -> TableName:
    """Return the name at a place of a table that has another one now."""
    for at, event in reversed(actions):
        is_later = Place(*at[:3]) >= place and event.action == "rename_table"
        if is_later and (event.other_schema_name, event.other_table_name) == name:
            name = event.schema_name or "", event.table_name or ""
    return name


def _logged_actions(history: "SchemaHistory") -> "list[tuple[Position, Action]]":
    """Return the actions of the statements in the log, in their order: reading a large history takes seconds."""
    from ingest.ddl.actions import Action

    return [(place, event) for place, event in history.evidence() if isinstance(event, Action) and len(place) > 5]


def _statements(
    history: "SchemaHistory", actions: "Sequence[tuple[Position, Action]]", name: TableName, first: Place
) -> Iterator[Statement]:
    """Yield the statements since a place that altered or renamed a table, under all of its names."""
    for place, group in groupby(actions, key=lambda one: (one[0][0], one[0][1], one[0][4], one[0][5])):
        steps = [event for _, event in group if (event.schema_name, event.table_name) == name]
        where = Place(*place[:3])
        changing = [one for one in steps if one.action in (*_ALTERING, "rename_table") or _sets_default(one)]
        if where < first or not changing:
            continue
        renames = [one for one in steps if one.action == "rename_table"]
        new_name = (renames[-1].other_schema_name or "", renames[-1].other_table_name or "") if renames else name
        yield Statement(where, history.file_at(place), name, new_name, tuple(steps))
        name = new_name


def _unfollowed(
    log: Log, source_id: str, statements: Sequence[Statement], first: Place, selected: Selected
) -> str | None:
    """Return why the rows of a table cannot be followed to its present name, if it has another one."""
    for number, statement in enumerate(statements):
        if not statement.is_rename:
            continue
        former, new = ".".join(statement.name), ".".join(statement.new_name)
        if statement.new_name in selected.tables or _has_changes(log, source_id, statement.new_name, statement.place):
            return f"{former} became {new} by {statement}, which was another table before: the rows of both are mixed"
        since = statements[number - 1].place if number else first
        for event in events_of(log.connection, LoggedTable(source_id, *statement.name), statement.place):
            if event.place >= since and not any(event.place == one.place for one in statements):
                return f"rows of {former} may have changed unseen since: {event}"
    return None


def _has_changes(log: Log, source_id: str, name: TableName, until: Place) -> bool:
    row = log.connection.execute(
        "select count(*) from binloom.row_changes where source_id = ? and schema_name = ? and table_name = ?"
        " and [epoch, file_sequence, start_pos] < [?, ?, ?]",
        [source_id, *name, *until],
    ).fetchone()
    return row is not None and row[0] > 0


class _Carried:
    """The way of the rows of one table through the statements.

    Attributes
    ----------
    problems, losses
        Why the rows cannot be carried, and which selected values cannot.
    """

    def __init__(
        self, history: "SchemaHistory", name: TableName, table: Table, statements: Sequence[Statement]
    ) -> None:
        self.name, self.table, self.statements = name, table, statements
        self.problems: list[str] = []
        self._history = history
        self._ways: dict[tuple[str, ...], list[tuple[Statement, Alteration]]] = {}
        self._lost: dict[tuple[str, Statement], int] = {}
        self._dropped: dict[str, Statement] = {}
        for statement in statements:
            if any(step.action == "not_understood" for step in statement.steps):
                self.problems.append(f"{table.text} was altered since by {statement}, which is not understood")

    def way(self, columns: Columns, since: Place) -> list[tuple[Statement, Alteration]]:
        """Return the effects of the statements on a row with some columns."""
        following = [one for one in self.statements if one.place > since]
        asked = (*columns.types, "", *columns.types.values(), str(len(following)))
        if asked not in self._ways:
            self._ways[asked] = []
            for statement in following:
                steps = tuple(step for step in statement.steps if step.action != "rename_table")
                found = alteration((steps,), columns)
                if found.after is None:
                    reason = (
                        f"{self.table.text} was altered since by {statement}, which does not fit the columns of its"
                        " rows"
                    )
                    if reason not in self.problems:
                        self.problems.append(reason)
                    break
                self._ways[asked].append((statement, found))
                columns = found.after
        return self._ways[asked]

    @cached_property
    def defaults(self) -> Row:
        """The columns that the statements added and whose values an INSERT leaves to the server."""
        found: Row = {}
        for number, statement in enumerate(self.statements):
            later = [step for one in self.statements[number + 1 :] for step in one.steps]
            for step in statement.steps:
                if step.action == "rename_column" and step.column_name in found:
                    found[step.columns[0].name] = found.pop(step.column_name)
                elif step.action == "add_column" and (column := self.table.by_name.get(step.columns[0].name)):
                    is_changed = any(one.action == "modify_column" or _sets_default(one) for one in later)
                    value = self._added(column.name, statement)
                    if value is UNKNOWN or (not is_changed and _has_default(step.columns[0])):
                        found[column.name] = value
        return {name: value for name, value in found.items() if name in self.table.stored_names}

    def _added(self, name: str, statement: Statement) -> str | None:
        for way in self._ways.values():
            for one, effect in way:
                origin = effect.origins.get(name)
                if one is statement and isinstance(origin, Added):
                    return UNKNOWN if origin.value is NOT_TOLD else origin.value
        return UNKNOWN

    def row(self, image: Image, way: Sequence[tuple[Statement, Alteration]]) -> Image:
        """Return an image as it is after the statements."""
        for _, effect in way:
            image = effect.row(image)
        return {name: value for name, value in image.items() if name in self.table.by_name}

    def untold(
        self,
        before: Image | None,
        after: Image | None,
        after_now: Image | None,
        undecoded: Sequence[str],
        way: Sequence[tuple[Statement, Alteration]],
    ) -> list[str]:
        """Return the columns that a change set to a value whose text after the statements is unknown.

        Without this, a column that the new image of an UPDATE lacks would look unchanged. `after_now` is that image as
        it is after the statements.
        """
        changed = {*undecoded}
        if before is not None and after is not None:
            changed |= {name for name in after if name not in before or after[name] != before[name]}
        for _, effect in way:
            changed = {effect.new_names[name] for name in changed if name in effect.new_names}
        return sorted((changed & {*self.table.by_name}) - {*(after_now or ())})

    def note_losses(
        self, before: Image | None, after: Image | None, way: Sequence[tuple[Statement, Alteration]]
    ) -> None:
        """Count the values of a selected change that no column has any more, or whose new text is unknown."""
        for statement, effect in way:
            kept = effect.new_names
            for name in {*(before or ()), *(after or ())}:
                is_changed = before is None or after is None or before.get(name) != after.get(name)
                if not is_changed:
                    continue
                if name not in kept:
                    self._dropped.setdefault(name, statement)
                elif before is not None and name in before and kept[name] not in effect.row(before):
                    self._lost[kept[name], statement] = self._lost.get((kept[name], statement), 0) + 1
            before = None if before is None else effect.row(before)
            after = None if after is None else effect.row(after)

    @property
    def losses(self) -> Iterator[str]:
        """Yield which values the statements made unknown."""
        generated = {column.name for column in self.table.columns if column.is_generated}
        for (name, statement), count in self._lost.items():
            if name not in generated:
                yield (
                    f"{statement} gave column {name} of {self.table.text} another type, and the new text of"
                    f" {counted(count, 'value')} is unknown: select other transactions, or undo it on a copy of the"
                    " table as it was before"
                )

    @property
    def dropped(self) -> Iterator[str]:
        """Yield which columns with changed values the statements dropped."""
        for name, statement in self._dropped.items():
            lost = "the table has no column for its values now"
            if name in self.table.by_name:
                lost = (
                    "the column that has this name now was added later, and does not get the values of the former one"
                )
            yield f"column {name} of {self.table.text}, which {statement} dropped: {lost}"

    @property
    def warnings(self) -> Iterator[str]:
        """Yield what an INSERT leaves to the server."""
        for name, value in self.defaults.items():
            if value is UNKNOWN:
                yield (
                    f"column {name} of {self.table.text}, which was added since: its default is no constant, so that"
                    " the server chooses the values of inserted rows when the script runs"
                )


def _has_default(column: "Column") -> bool:
    """Return whether the server gives a column its value in an INSERT without it; in strict mode, it may refuse."""
    return column.default is not None or column.is_nullable is not False


def _sets_default(step: "Action") -> bool:
    return step.action == "other" and (step.detail or "").startswith("alter ")


class _Images:
    """Writes the rows of tables again, with other images and names."""

    def __init__(self, connection: "DuckDBPyConnection", selected: Selected) -> None:
        self._connection = connection
        self._selected = selected
        self._is_begun = False

    def carry(self, carried: _Carried) -> None:
        """Write the rows of a table that were logged before the last statement."""
        import pyarrow as pa

        connection, table = self._connection, carried.table
        if not self._is_begun:
            connection.execute("create or replace table carried_changes as select * from binloom.row_changes limit 0")
            self._is_begun = True
        last = carried.statements[-1].place
        rows = connection.execute(
            f"""select change_id, {is_selected(self._selected.is_whole)}, epoch, file_sequence, start_pos,
                table_name, schema_name, table_version_id, event_type, pk_values, pk_values_after,
                {", ".join(f"map_keys({image}), map_values({image})" for image in _IMAGES)}, undecoded_columns
            from binloom.row_changes as changes
            where source_id = ? and [epoch, file_sequence, start_pos] < [?, ?, ?]
                and (schema_name, table_name) in ({", ".join("(?, ?)" for _ in carried.statements)})""",
            [self._selected.source_id, *last, *(part for one in carried.statements for part in one.name)],
        ).fetchall()
        columns = _columns_by_version(connection, carried, self._selected.source_id)
        found: list[dict[str, Any]] = []
        for row in rows:
            change_id, is_chosen, *where, name, schema, version, event_type, key, key_after = row[:11]
            place = Place(*where)
            if not _is_named(carried, (schema, name), place) or version not in columns:
                continue
            way = carried.way(columns[version], place)
            before, after = (_image(*row[at : at + 2]) for at in (11, 13))
            if is_chosen:
                carried.note_losses(before, after, way)
            images = [None if one is None else carried.row(one, way) for one in (before, after)]
            unknown = carried.untold(before, after, images[1], row[15] or (), way)
            keys = _keys(table, way, event_type, (key, key_after), images)
            if keys is None:
                reason = (
                    f"the primary key of {table.text} changed with {way[-1][0]}, and its rows do not tell the new key"
                )
                if reason not in carried.problems:
                    carried.problems.append(reason)
                continue
            found.append(
                {
                    "change_id": change_id, "new_schema": table.name[0], "new_table": table.name[1],
                    "new_key": keys[0], "new_key_after": keys[1],
                    "new_row_before": None if images[0] is None else [*images[0].items()],
                    "new_row_after": None if images[1] is None else [*images[1].items()],
                    "new_undecoded": unknown or None,
                }
            )  # fmt: skip
        pairs = pa.map_(pa.string(), pa.string())
        names = ("change_id", "new_schema", "new_table", "new_key", "new_key_after")
        schema_ = pa.schema([*((one, pa.string()) for one in names), *((f"new_{one}", pairs) for one in _IMAGES)])
        schema_ = schema_.append(pa.field("new_undecoded", pa.list_(pa.string())))
        with registered(connection, "carried_rows", pa.Table.from_pylist(found, schema_)):
            connection.execute(
                """insert into carried_changes by name
                select changes.* replace (
                    new_schema as schema_name, new_table as table_name, new_key as pk_values,
                    new_key_after as pk_values_after, null as table_version_id, new_row_before as row_before,
                    new_row_after as row_after, new_undecoded as undecoded_columns
                ) from binloom.row_changes as changes inner join carried_rows using (change_id)"""
            )

    def place(self) -> bool:
        """Put the written rows in the place of the logged ones; return whether there are any."""
        if not self._is_begun:
            return False
        lay_over(
            self._connection,
            "unaltered_row_changes",
            "select * from binloom.unaltered_row_changes anti join carried_changes using (change_id)"
            " union all by name select * from carried_changes",
        )
        return True


def _columns_by_version(connection: "DuckDBPyConnection", carried: _Carried, source_id: str) -> dict[str, Columns]:
    """Return the columns of each version of a table, under all of its names."""
    names = {statement.name for statement in carried.statements}
    rows = connection.execute(
        "select table_version_id, schema_name, table_name, columns, primary_key_columns from binloom.table_versions"
        " where source_id = ?",
        [source_id],
    ).fetchall()
    generated = [column.name for column in carried.table.columns if column.is_generated]
    return {
        version: Columns.of_version(columns, key).with_generated(generated)
        for version, schema, name, columns, key in rows
        if (schema, name) in names
    }


def _is_named(carried: _Carried, name: TableName, place: Place) -> bool:
    """Return whether the table had a name at a place."""
    here = next((one.name for one in carried.statements if place < one.place), carried.table.name)
    return name == here


def _image(names: list[str] | None, values: list[str | None] | None) -> Image | None:
    return None if names is None or values is None else dict(zip(names, values, strict=True))


def _keys(
    table: Table,
    way: Sequence[tuple[Statement, Alteration]],
    event_type: str,
    keys: tuple[str | None, str | None],
    images: Sequence[Image | None],
) -> tuple[str | None, str | None] | None:
    """Return the keys of a row before and after its change as `row_changes` has them; None if they are unknown."""
    if not table.primary_key or all(effect.keeps_keys for _, effect in way):
        return keys if table.primary_key else (None, None)
    from recover.selection.filters import key_text

    texts: list[str] = []
    before: Mapping[str, str | None] = {}
    for image in images:
        if image is None:
            continue
        before = {**before, **image}
        parts = [before.get(name) for name in table.logged_key]
        if any(part is None for part in parts):
            return None
        texts.append(key_text(part or "" for part in parts))
    return texts[0], texts[-1] if event_type == "UPDATE" and texts[-1] != texts[0] else None
