"""Tables whose rows a statement changes.

A statement is read only as far as its targets need: an INSERT up to the name of its table, an UPDATE of one table up to
SET. Text that ends early or is not understood still has a verb; its tables are those that were read.

Sources: server, sql/sql_yacc.yy, `insert_stmt`, `update_stmt`, `delete_stmt`, `load_stmt`, `table_factor`; MariaDB,
sql/sql_yacc.yy.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from ingest.ddl.names import Names
from ingest.ddl.statements import QUERIES, actions_of
from ingest.ddl.tokens import BeginningCursor, Cursor, MoreTextError, NotUnderstoodError, tokens_of
from ingest.versions import NEWEST, Flavor

# A beginning of this many characters is read first, and then one that is this many times as long.
_FIRST_SIZE: Final = 64
_GROWTH: Final = 8

_INSERT_MODIFIERS: Final = ("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE")
_UPDATE_MODIFIERS: Final = ("LOW_PRIORITY", "IGNORE")
_DELETE_MODIFIERS: Final = ("LOW_PRIORITY", "QUICK", "IGNORE")
_JOINS: Final = ("JOIN", "STRAIGHT_JOIN")
_END_OF_TABLES: Final = ("SET", "WHERE", "ORDER", "LIMIT")
_NO_ALIAS: Final = frozenset(
    {
        *(*_JOINS, *_END_OF_TABLES, "INNER", "CROSS", "LEFT", "RIGHT", "NATURAL", "OUTER", "ON", "USING", "USE"),
        *("FORCE", "IGNORE", "PARTITION", "FOR"),
    }
)


@dataclass(frozen=True, slots=True)
class DmlTarget:
    """A table whose rows a statement may change, as an element of `dml_targets`.

    Attributes
    ----------
    verb
        INSERT, REPLACE, UPDATE, DELETE, LOAD DATA, CREATE TABLE SELECT, or SELECT: a server logs the call of a stored
        function that changes rows as SELECT.
    schema_name, table_name
        The table. The schema is None where no schema is known, and both are None where the table is unknown, as those
        that a stored function in the statement changes.
    """

    verb: str
    schema_name: str | None = None
    table_name: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """Targets of a statement.

    Attributes
    ----------
    targets
        The targets, each table once.
    size
        Every statement that has the same first `size` characters has the same targets; None if all of the text counts.
    """

    targets: tuple[DmlTarget, ...]
    size: int | None = None


def read_targets(
    text: str,
    default_schema: str | None,
    sql_mode: int = 0,
    flavor: Flavor = "mysql",
    version: tuple[int, ...] = NEWEST,
) -> Reading:
    """Return the tables whose rows a statement changes; no text raises an error.

    An UPDATE of several tables changes those whose columns it sets. If a column has no table's name before it, any of
    the tables may have it.

    Parameters
    ----------
    text
        The statement.
    default_schema
        Schema of names without a schema.
    sql_mode
        Bits of the SQL mode in which it runs.
    flavor, version
        The server's flavor and version; without a version, the newest.
    """
    size = _FIRST_SIZE
    while True:
        is_whole = size >= len(text)
        reader = _Reader(_beginning(text[:size], is_whole, sql_mode, flavor, version), default_schema or None)
        try:
            reader.read()
        except NotUnderstoodError:
            pass
        except MoreTextError:
            size *= _GROWTH
            continue
        if reader.verb == "CREATE":
            return Reading(_filled_tables(text, default_schema, sql_mode, flavor, version))
        return Reading(tuple(dict.fromkeys(reader.targets())), reader.read_size)


def _beginning(text: str, is_whole: bool, sql_mode: int, flavor: Flavor, version: tuple[int, ...]) -> BeginningCursor:
    tokens = tokens_of(text, sql_mode, flavor, version, is_cut=True)
    return BeginningCursor(text, tokens if is_whole else tokens[:-1], is_whole)


def _filled_tables(
    text: str, default_schema: str | None, sql_mode: int, flavor: Flavor, version: tuple[int, ...]
) -> tuple[DmlTarget, ...]:
    """Return the table that CREATE TABLE fills with the rows of a query."""
    return tuple(
        DmlTarget("CREATE TABLE SELECT", action.schema_name, action.table_name)
        for action in actions_of(text, default_schema, sql_mode, flavor, version)
        if action.action == "create_select"
    )


@dataclass(frozen=True, slots=True)
class _Reference:
    """A table of a join. `name` is None for the result of a query or function."""

    label: str
    schema: str | None = None
    name: str | None = None


class _Reader:
    """Reads one statement.

    Attributes
    ----------
    verb
        Verb of the statement, once it is read; empty for a statement that changes no rows.
    """

    def __init__(self, cursor: BeginningCursor, default_schema: str | None) -> None:
        self._cursor = cursor
        self._names = Names(default_schema)
        self.verb = ""
        self._common_tables: set[str] = set()
        self._targets: list[_Reference] = []  # Tables that are named as targets.
        self._references: list[_Reference] = []  # Tables of the join.
        self._qualifiers: list[list[str]] = []  # Names before the columns that are set.
        self._has_all_columns = False

    @property
    def read_size(self) -> int | None:
        """Number of characters that decided what was read."""
        return self._cursor.read_size

    def read(self) -> None:
        """Read the statement as far as its targets need."""
        cursor = self._cursor
        cursor.skip_settings()
        if cursor.take_words("WITH"):
            self._skip_common_tables()
        match verb := cursor.word():
            case "INSERT" | "REPLACE":
                self._begin(verb, _INSERT_MODIFIERS)
                cursor.take_words("INTO")
                self._targets.append(_named(*self._names.table(cursor)))
            case "UPDATE":
                self._begin(verb, _UPDATE_MODIFIERS)
                self._read_join()
                if len(self._base_tables()) > 1:
                    cursor.expect("SET")
                    self._read_columns()
            case "DELETE":
                self._begin(verb, _DELETE_MODIFIERS)
                self._read_delete()
            case "LOAD" if cursor.word(1) in ("DATA", "XML"):
                self._begin("LOAD DATA")
                while not cursor.take_words("INTO", "TABLE"):
                    cursor.skip()
                self._targets.append(_named(*self._names.table(cursor)))
            case "SELECT" | "CREATE":
                self.verb = verb

    def targets(self) -> Iterable[DmlTarget]:
        """Return the targets as far as they have been read."""
        if not self.verb:
            return ()
        tables = self._updated() if self.verb == "UPDATE" else [self._resolved(target) for target in self._targets]
        if not tables:
            return (DmlTarget(self.verb),)
        return (DmlTarget(self.verb, table.schema, table.name) for table in tables)

    def _begin(self, verb: str, modifiers: Sequence[str] = ()) -> None:
        self.verb = verb
        self._cursor.at += 1
        while self._cursor.take_one_of(*modifiers):
            pass

    def _skip_common_tables(self) -> None:
        """Skip the queries behind WITH, and keep their names, which are no tables."""
        cursor = self._cursor
        cursor.take_words("RECURSIVE")
        while True:
            self._common_tables.add(cursor.name().lower())
            if cursor.is_sign("("):
                cursor.skip()
            cursor.expect("AS")
            cursor.skip()
            if cursor.take_words("CYCLE"):
                cursor.skip()
                cursor.take_words("RESTRICT")
            if not cursor.take_sign(","):
                return

    # --- DELETE ---

    def _read_delete(self) -> None:
        """Read the targets, which may be aliases, and the join that tells what they refer to."""
        cursor = self._cursor
        if cursor.is_words("HISTORY", "FROM"):
            cursor.at += 1
        is_from_first = cursor.take_words("FROM")
        self._read_deleted()
        while cursor.take_sign(","):
            self._read_deleted()
        if is_from_first and not cursor.take_words("USING"):
            return
        if not is_from_first:
            cursor.expect("FROM")
        self._read_join()

    def _read_deleted(self) -> None:
        """Read the name of a table or an alias, which `.*` may follow."""
        cursor = self._cursor
        has_schema = not cursor.take_sign(".")
        names = [cursor.name()]
        while has_schema and cursor.take_sign("."):
            if cursor.take_sign("*"):
                break
            names.append(cursor.value())
        self._targets.append(_Reference(names[-1], names[-2] if len(names) > 1 else None, names[-1]))

    def _resolved(self, target: _Reference) -> _Reference:
        """Return the table that a target refers to; a name that is not in the join is that of a table."""
        if target.schema is None:
            found = self._reference(target.label)
            if found is not None and found.name is not None:
                return found
            return _Reference(target.label, self._names.default_schema, target.name)
        return target

    # --- UPDATE ---

    def _read_columns(self) -> None:
        """Read the columns that are set."""
        cursor = self._cursor
        while True:
            names = [cursor.name()]
            while cursor.take_sign("."):
                names.append(cursor.value())
            self._qualifiers.append(names[:-1])
            while not (cursor.is_at_end or cursor.is_sign(",") or cursor.word() in _END_OF_TABLES):
                _skip_term(cursor)
            if not cursor.take_sign(","):
                self._has_all_columns = True
                return

    def _updated(self) -> list[_Reference]:
        """Return the tables whose columns are set; all tables where this is unknown."""
        found = [self._reference(names[-1]) if names else None for names in self._qualifiers]
        known = [table for table in found if table is not None and table.name is not None]
        return known if self._has_all_columns and len(known) == len(found) else self._base_tables()

    def _base_tables(self) -> list[_Reference]:
        return [table for table in self._references if table.name is not None]

    # --- joins ---

    def _read_join(self) -> None:
        """Read the tables of a join with their aliases, without the conditions; stop at the clause behind it."""
        cursor = self._cursor
        is_table_next = True
        depth = 0
        while not cursor.is_at_end and (depth > 0 or cursor.word() not in _END_OF_TABLES):
            if is_table_next:
                if cursor.is_sign("(") and cursor.word(1) not in QUERIES:
                    cursor.at += 1
                    depth += 1
                elif cursor.take_sign("{"):  # The notation of ODBC, { OJ a LEFT JOIN b ON ... }
                    cursor.expect("OJ")
                else:
                    self._read_table()
                    is_table_next = False
            elif cursor.take_sign(")"):
                depth -= 1
            elif cursor.take_sign(",") or cursor.take_one_of(*_JOINS):
                is_table_next = True
            else:
                _skip_term(cursor)

    def _read_table(self) -> None:
        """Read a table, or a query or function in its place, with its alias."""
        cursor = self._cursor
        schema, name = None, None
        if not cursor.is_sign("("):
            schema, name = self._read_name()
        if cursor.is_sign("("):
            cursor.skip()
            schema, name = None, None
        if cursor.take_words("PARTITION"):
            cursor.skip()
        has_alias = cursor.take_words("AS") or (cursor.is_name() and cursor.word() not in _NO_ALIAS)
        self._references.append(_Reference(cursor.name() if has_alias else name or "", schema, name))

    def _read_name(self) -> tuple[str | None, str | None]:
        is_qualified = self._cursor.is_sign(".", 1)
        schema, name = self._names.table(self._cursor)
        return (None, None) if not is_qualified and name.lower() in self._common_tables else (schema, name)

    def _reference(self, label: str) -> _Reference | None:
        """Return what a name in the statement refers to; capitals count only where two names differ in nothing else."""
        exact, folded = self._by_label
        return exact.get(label) or folded.get(label.lower())

    @cached_property
    def _by_label(self) -> tuple[dict[str, _Reference], dict[str, _Reference]]:
        """The tables of the join, once it is read, by label and by label in lower case."""
        return {one.label: one for one in self._references}, {one.label.lower(): one for one in self._references}


def _named(schema: str | None, name: str) -> _Reference:
    return _Reference(name, schema, name)


def _skip_term(cursor: Cursor) -> None:
    """Move past a token or parentheses; the word behind a dot or `@` is a name and ends no clause."""
    if cursor.is_sign(".") or cursor.is_sign("@"):
        cursor.at += 1
    cursor.skip()
