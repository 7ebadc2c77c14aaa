"""DDL statements as actions: all words before a table's definition, and all statements except ALTER TABLE.

Sources: server, sql/sql_yacc.yy; MariaDB, sql/sql_yacc.yy.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from ingest.ddl.actions import Action, Key, Kind
from ingest.ddl.alter_table import read_alter_table
from ingest.ddl.column_types import (
    DataType,
    Dialect,
    bytes_each,
    character_set_of,
    read_character_set,
    read_collation,
    read_type,
)
from ingest.ddl.definitions import Elements, read_algorithm, read_elements, read_key_parts
from ingest.ddl.labels import Literals
from ingest.ddl.letter_case import lowered
from ingest.ddl.names import Names
from ingest.ddl.sequences import VALUES, sequence_columns
from ingest.ddl.sql_modes import MODES_OF_VALUES, SYNTAXES
from ingest.ddl.table_options import hiding_options, read_option
from ingest.ddl.temporary_tables import temporary
from ingest.ddl.tokens import Cursor, NotUnderstoodError, tokens_of
from ingest.ddl.verbs import VERBS, may_be_ddl, sets_sql_mode
from ingest.ddl.versioning import PERIOD, with_row_end
from ingest.versions import NEWEST, Flavor

_MODIFIERS: Final = (
    *("TEMPORARY", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "ONLINE", "OFFLINE", "IGNORE", "UNDO", "EXTERNAL"),
    *("JSON", "RELATIONAL", "DUALITY", "MATERIALIZED"),
)
OBJECTS_BESIDE_TABLES: Final = (
    *("VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "LIBRARY", "PACKAGE", "EVENT", "USER", "ROLE", "TABLESPACE"),
    *("SERVER", "INSTANCE", "LOGFILE", "RESOURCE", "SPATIAL", "COMPRESSION_DICTIONARY"),
)
"""Kinds of objects; a statement on one of them changes no table."""

_OBJECTS: Final = ("TABLE", "DATABASE", "INDEX", "SEQUENCE", "CATALOG", *OBJECTS_BESIDE_TABLES)
QUERIES: Final = frozenset({"SELECT", "VALUES", "TABLE", "WITH"})


def actions_of(
    text: str,
    default_schema: str | None,
    sql_mode: int = 0,
    server: Flavor = "mysql",
    version: tuple[int, ...] = NEWEST,
    literals: Literals | None = None,
) -> list[Action]:
    """Return the effects of a statement on the schema, as consecutive actions.

    Parameters
    ----------
    text
        The statement.
    default_schema
        Schema of names without a schema.
    sql_mode
        Bits of the SQL mode in which it runs.
    server, version
        The server's flavor and version; without a version, the newest.
    literals
        How the server read literals; None if they mean what the text shows.

    Returns
    -------
    list of Action
        Empty when the statement is not DDL; one action `not_understood` when it is DDL of an unknown form that may
        change a table.
    """
    if not may_be_ddl(text):
        return []
    dialect = Dialect(server, version, sql_mode, literals)
    if not sets_sql_mode(text):
        return _reading_of(text, default_schema, dialect)
    # The mode of the session decided how the server read the text, and the log has the mode that the statement sets.
    kept = sql_mode & sum(MODES_OF_VALUES.values())
    readings = [_reading_of(text, default_schema, replace(dialect, sql_mode=kept | syntax)) for syntax in SYNTAXES]
    # Columns with different defaults are equal.
    possible = {repr(one): one for one in readings if not _is_not_understood(one)}
    if len(possible) > 1:
        firsts = [one[0] for one in possible.values() if one]
        tables = {(one.schema_name, one.table_name) for one in firsts}
        table = tables.pop() if len(tables) == 1 else (None, None)
        detail = "it sets sql_mode, and depends on the sql_mode of its session"
        return [Action("not_understood", firsts[0].statement_type, *table, detail=detail)]
    return next(iter(possible.values()), readings[0])


def _is_not_understood(actions: Sequence[Action]) -> bool:
    return [one.action for one in actions] == ["not_understood"]


def _reading_of(text: str, default_schema: str | None, dialect: Dialect) -> list[Action]:
    reader = _Reader(text, default_schema or None, dialect)
    try:
        return reader.read()
    except (NotUnderstoodError, RecursionError, OverflowError, ValueError) as error:
        if reader.changes_no_table:
            return [Action("other", reader.statement_type, detail=reader.statement_type.lower())]
        return [
            Action(
                "not_understood",
                reader.statement_type,
                reader.schema_name,
                reader.table_name,
                detail=str(error) or type(error).__name__,
            )
        ]


class _Reader:
    """Reads one statement.

    Attributes
    ----------
    statement_type
        Verb and object, as far as they have been read.
    schema_name, table_name
        The table that the statement is about, once its name has been read.
    changes_no_table
        Whether the statement is known to change no table, whatever comes behind its first words.
    """

    def __init__(self, text: str, default_schema: str | None, dialect: Dialect) -> None:
        self._text = text
        self._dialect = dialect
        self._names = Names(default_schema)
        first = re.search(rf"(?i)\b(?:{'|'.join(VERBS)})\b", text)
        self.statement_type = first[0].upper() if first else ""
        self.schema_name: str | None = None
        self.table_name: str | None = None
        self.changes_no_table = False
        self._options: list[Action] = []

    def read(self) -> list[Action]:
        """Read the statement and return its actions."""
        statement = self._text, self._dialect.sql_mode, self._dialect.flavor, self._dialect.version
        literals = self._dialect.literals
        # In a character set of single bytes, U+00A0 is never a letter.
        blanks = "\xa0" if literals is not None and bytes_each(literals.client) == 1 else ""
        try:
            self._cursor = Cursor(self._text, tokens_of(*statement, blanks=blanks))
        except NotUnderstoodError:
            # The body of a routine may have quotes of another language. What comes before them tells what it is.
            self._cursor = Cursor(self._text, tokens_of(*statement, is_cut=True, blanks=blanks))
            self._beginning()
            raise
        verb, modifiers, named = self._beginning()
        match verb, named:
            case "", _:
                return []
            case "TRUNCATE", _:
                return self._truncate()
            case "DROP", "TABLE" if "TEMPORARY" in modifiers:
                return [temporary(one, verb) for one in self._drop_table()]
            case _, "TABLE" if "TEMPORARY" in modifiers:
                self._is_conditional()
                self._table()
                return [temporary(self._action("other"), verb)]
            case "CREATE", "TABLE":
                return self._create_table("REPLACE" in modifiers)
            case "ALTER", "TABLE":
                return self._alter_table()
            case "DROP", "TABLE":
                return self._drop_table()
            case "RENAME", "TABLE":
                return self._rename_table()
            case _, "DATABASE":
                return self._database(verb, "REPLACE" in modifiers)
            case "CREATE" | "DROP", "INDEX":
                return self._index(verb, is_unique="UNIQUE" in modifiers)
            case "CREATE", "SEQUENCE" if "TEMPORARY" not in modifiers:
                return self._create_sequence("REPLACE" in modifiers)
            case "ALTER", "SEQUENCE":
                return self._alter_sequence()
            case "DROP", "SEQUENCE" if "TEMPORARY" not in modifiers:
                return self._drop_table()
        return self._other(verb, named)

    # --- words before the object's name ---

    def _beginning(self) -> tuple[str, set[str], str]:
        """Read verb, modifiers and the kind of the object. The verb is empty when the statement is not DDL."""
        self._cursor.skip_settings()
        verb = self._cursor.take_one_of(*VERBS)
        if verb in ("", "TRUNCATE"):
            return verb, set(), ""
        self.statement_type = verb
        modifiers = self._skip_modifiers()
        named = self._object()
        self.statement_type = f"{verb} {named}"
        self.changes_no_table = named in OBJECTS_BESIDE_TABLES
        return verb, modifiers, named

    def _skip_modifiers(self) -> set[str]:
        """Skip the words between the verb and the object; return the modifiers among them."""
        cursor, found = self._cursor, set[str]()
        while True:
            if cursor.take_words("OR", "REPLACE"):
                found.add("REPLACE")
            elif word := cursor.take_one_of(*_MODIFIERS):
                if word == "SPATIAL" and cursor.is_words("REFERENCE"):
                    cursor.at -= 1
                    return found
                found.add(word)
            elif cursor.take_one_of("ALGORITHM", "DEFINER"):
                cursor.expect_sign("=")
                self._skip_account()
            elif cursor.take_words("SQL", "SECURITY"):
                cursor.name()
            elif not cursor.take_words("AGGREGATE"):
                return found

    def _skip_account(self) -> None:
        """Skip `user`@`host`, CURRENT_USER() or a plain word."""
        cursor = self._cursor
        cursor.value()
        if cursor.is_sign("("):
            cursor.skip()
        elif cursor.take_sign("@"):
            cursor.value()

    def _object(self) -> str:
        cursor = self._cursor
        word = cursor.word()
        if word in ("SCHEMA", "SCHEMAS"):
            word = "DATABASE"
        if word not in _OBJECTS and word.removesuffix("S") in _OBJECTS:
            word = word.removesuffix("S")
        if word not in _OBJECTS:
            raise cursor.not_understood("the kind of an object")
        cursor.at += 1
        return word

    def _is_conditional(self) -> bool:
        return self._cursor.take_words("IF", "EXISTS") or self._cursor.take_words("IF", "NOT", "EXISTS")

    def _table(self) -> tuple[str | None, str]:
        """Read the name of the table that the statement is about."""
        self.schema_name, self.table_name = self._names.table(self._cursor)
        return self.schema_name, self.table_name

    def _skip_wait(self) -> None:
        if self._cursor.take_words("WAIT"):
            self._cursor.number()
        else:
            self._cursor.take_words("NOWAIT")

    def _end(self) -> None:
        if not self._cursor.is_at_end:
            raise self._cursor.not_understood("the end")

    def _action(self, kind: Kind, **facts: Any) -> Action:
        known: dict[str, Any] = {"schema_name": self.schema_name, "table_name": self.table_name}
        return Action(kind, self.statement_type, **(known | facts))

    # --- statements ---

    def _create_table(self, is_replaced: bool) -> list[Action]:
        cursor = self._cursor
        is_conditional = self._is_conditional()
        self._table()
        dropped = [self._action("drop_table", is_conditional=True)] if is_replaced else []
        if cursor.take_words("LIKE"):
            return [*dropped, self._create_like(is_conditional)]
        elements = Elements()
        if cursor.is_sign("(") and cursor.word(1) == "LIKE":
            cursor.at += 2
            created = self._create_like(is_conditional)
            cursor.expect_sign(")")
            return [*dropped, created]
        if cursor.is_sign("(") and not _opens_select(cursor):
            elements = read_elements(cursor, self._dialect, self._names.table)
        character_set, collation, is_versioned, has_select = self._table_tail()
        if character_set == "default":
            character_set, collation = None, collation or "default"
        if not elements.definitions and not has_select:
            raise cursor.not_understood("columns")
        columns, key = elements.columns(character_set, self._dialect), elements.key_columns
        is_versioned = is_versioned or any(one.is_versioned for one in elements.definitions)
        has_period = is_versioned and not elements.declares_period
        if has_period:
            columns, key = (*columns, *PERIOD), with_row_end(key)
        created = self._action(
            "create_select" if has_select else "create_table",
            columns=columns,
            key_columns=key,
            character_set=character_set,
            collation=collation,
            is_conditional=is_conditional,
            detail="system versioning" if has_period else None,
            keys=elements.all_keys,
        )
        return [*dropped, created, *hiding_options(self._options)]

    def _create_sequence(self, is_replaced: bool) -> list[Action]:
        """Read a MariaDB sequence: a table of one row, which is logged like any other table."""
        is_conditional = self._is_conditional()
        self._table()
        dropped = [self._action("drop_table", is_conditional=True)] if is_replaced else []
        value = DataType("bigint", "21")
        if self._cursor.take_words("AS"):
            value = read_type(self._cursor, self._dialect)
        created = self._action(
            "create_table", columns=sequence_columns(value), is_conditional=is_conditional, detail="sequence"
        )
        return [*dropped, created]

    def _alter_sequence(self) -> list[Action]:
        cursor = self._cursor
        self._is_conditional()
        self._table()
        cursor.skip_until(lambda at: at.word() == "AS")
        if not cursor.take_words("AS"):
            return [self._action("other", detail="alter sequence")]
        values = sequence_columns(read_type(cursor, self._dialect))[:VALUES]
        return [
            self._action("modify_column", column_name=one.name, columns=(one,), detail="sequence") for one in values
        ]

    def _create_like(self, is_conditional: bool) -> Action:
        schema, table = self._names.table(self._cursor)
        return self._action(
            "create_like", other_schema_name=schema, other_table_name=table, is_conditional=is_conditional
        )

    def _table_tail(self) -> tuple[str | None, str | None, bool, bool]:
        """Read the part behind the columns: default character set and collation, versioning, presence of a query.

        Skip partitions and storage options, except those that tell whose rows the table has.
        """
        cursor = self._cursor
        character_set = collation = None
        is_versioned = False
        while not cursor.is_at_end:
            if cursor.take_words("WITH", "SYSTEM", "VERSIONING"):
                is_versioned = True
            elif _opens_select(cursor):
                return _belonging_to(collation, character_set), collation, is_versioned, True
            elif cursor.take_words("PARTITION", "BY"):
                cursor.skip_until(lambda at: at.word() == "AS" or _opens_select(at))
            elif cursor.take_words("COLLATE"):
                collation = read_collation(cursor, self._dialect)
            elif cursor.word() in ("ENGINE", "UNION"):
                self._options += read_option(cursor, self._names, self._action)
            elif cursor.word() in ("COMMENT", "CONNECTION", "PASSWORD") or cursor.is_sign("="):
                cursor.skip()
                cursor.take_sign("=")
                cursor.skip()
            elif (said := read_character_set(cursor, self._dialect)) is not None:
                character_set = said
            else:
                cursor.skip()
        return _belonging_to(collation, character_set), collation, is_versioned, False

    def _alter_table(self) -> list[Action]:
        is_conditional = self._is_conditional()
        self._table()
        self._skip_wait()
        actions = read_alter_table(self._cursor, self._dialect, self._names, self._action)
        self._end()
        return [replace(action, is_conditional=True) for action in actions] if is_conditional else actions

    def _drop_table(self) -> list[Action]:
        cursor = self._cursor
        is_conditional = self._is_conditional()
        dropped = []
        while True:
            schema, table = self._names.table(cursor)
            dropped.append(
                self._action("drop_table", schema_name=schema, table_name=table, is_conditional=is_conditional)
            )
            if not cursor.take_sign(","):
                break
        cursor.take_one_of("RESTRICT", "CASCADE")
        self._skip_wait()
        self._end()
        return dropped

    def _rename_table(self) -> list[Action]:
        cursor = self._cursor
        is_conditional = self._is_conditional()
        renamed = []
        while True:
            schema, table = self._names.table(cursor)
            self._skip_wait()
            cursor.expect("TO")
            new_schema, new_table = self._names.table(cursor)
            renamed.append(
                self._action(
                    "rename_table",
                    schema_name=schema,
                    table_name=table,
                    other_schema_name=new_schema,
                    other_table_name=new_table,
                    is_conditional=is_conditional,
                )
            )
            if not cursor.take_sign(","):
                break
        self._end()
        return renamed

    def _truncate(self) -> list[Action]:
        self.statement_type = "TRUNCATE TABLE"
        # TABLE is optional, but no table has this name without quotes.
        self._cursor.take_words("TABLE")
        self._table()
        self._skip_wait()
        self._end()
        return [self._action("truncate_table")]

    def _database(self, verb: str, is_replaced: bool) -> list[Action]:
        cursor = self._cursor
        is_conditional = self._is_conditional()
        # Only ALTER DATABASE may omit the name.
        has_name = verb != "ALTER" or not (
            cursor.is_at_end or cursor.word() in ("CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "COMMENT")
        )
        self.schema_name = cursor.name() if has_name else self._names.default_schema
        if verb == "DROP":
            self._end()
            return [self._action("drop_database", is_conditional=is_conditional)]
        character_set, collation, _, _ = self._table_tail()
        if verb == "ALTER":
            return [self._action("other", detail="alter database", character_set=character_set, collation=collation)]
        if character_set == "default":
            character_set, collation = None, collation or "default"
        facts = {"character_set": character_set, "collation": collation}
        dropped = [self._action("drop_database", is_conditional=True)] if is_replaced else []
        return [*dropped, self._action("create_database", is_conditional=is_conditional, **facts)]

    def _index(self, verb: str, *, is_unique: bool) -> list[Action]:
        cursor = self._cursor
        is_conditional = self._is_conditional()
        name = cursor.name()
        algorithm = read_algorithm(cursor)
        cursor.skip_until(lambda at: at.word() == "ON")
        cursor.expect("ON")
        self._table()
        if verb == "DROP" and lowered(name) == "primary":
            return [self._action("drop_primary_key", is_conditional=is_conditional)]
        keys: tuple[Key, ...] = ()
        if is_unique:
            parts = read_key_parts(cursor)
            cursor.skip_until(lambda at: at.word() in ("USING", "TYPE"))
            algorithm = read_algorithm(cursor) or algorithm
            key = Key.of_parts(name, parts, is_hash=self._dialect.is_mariadb and algorithm == "HASH")
            keys = (replace(key, is_conditional=is_conditional),)
        facts = {"keys": keys, "dropped_keys": (name,) if verb == "DROP" else ()}
        return [self._action("other", detail=f"{verb.lower()} index {name}", is_conditional=is_conditional, **facts)]

    def _other(self, verb: str, named: str) -> list[Action]:
        """Read a statement that changes no table. A view or sequence is named like a table; a trigger has a table."""
        cursor, detail = self._cursor, f"{verb} {named}".lower()
        if named in ("VIEW", "SEQUENCE"):
            is_conditional = self._is_conditional()
            self._table()
            found = [self._action("other", detail=detail, is_conditional=is_conditional)]
            while verb == "DROP" and cursor.take_sign(","):
                self._table()
                found.append(self._action("other", detail=detail, is_conditional=is_conditional))
            return found
        if named == "TRIGGER" and verb == "CREATE":
            self._is_conditional()
            self._names.table(cursor)
            cursor.skip_until(lambda at: at.word() == "ON")
            cursor.expect("ON")
            self._table()
        elif named in ("TRIGGER", "PROCEDURE", "FUNCTION", "LIBRARY", "EVENT", "PACKAGE"):
            self._is_conditional()
            cursor.take_words("BODY")
            self.schema_name = self._names.table(cursor)[0]
        return [self._action("other", detail=detail)]


def _opens_select(cursor: Cursor) -> bool:
    """Return whether the opening parentheses here contain a query. Without quotes, its first words are not names."""
    ahead = 0
    while cursor.is_sign("(", ahead):
        ahead += 1
    return cursor.word(ahead) in QUERIES


def _belonging_to(collation: str | None, character_set: str | None) -> str | None:
    """Return the character set as written, or else the character set of the collation."""
    implied = None if collation is None else character_set_of(collation)
    return implied or character_set if character_set in (None, "default") else character_set
