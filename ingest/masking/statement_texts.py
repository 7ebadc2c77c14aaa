"""The texts of statements without the values in them.

A statement may contain any value of any table: in a literal, in a comment, in a variable. So the text of a statement is
replaced by its verb and a digest. Only a statement that changes a schema keeps its words, because the history of the
schema is read from them; its literals are replaced.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

import pyarrow as pa

from ingest.binlog.text.collations import charset_names, collation_names
from ingest.ddl.actions import Action
from ingest.ddl.batches import sql_mode_bits, statement_actions
from ingest.ddl.digests.digest import DigestReader
from ingest.ddl.digests.digest_batches import digest_hash
from ingest.ddl.verbs import may_be_ddl, sets_sql_mode
from ingest.versions import Flavor, version_of

_DIGEST_DIGITS: Final = 16
_WORD: Final = re.compile(r"(?s)(?:\s|/\*.*?\*/|#[^\n]*\n|--[^\n]*\n)*+([A-Za-z]+)")
_VERBS: Final = frozenset(
    {
        "ALTER",
        "ANALYZE",
        "BEGIN",
        "CALL",
        "CHANGE",
        "COMMIT",
        "CREATE",
        "DELETE",
        "DO",
        "DROP",
        "FLUSH",
        "GRANT",
        "INSERT",
    }
    | {"LOAD", "LOCK", "OPTIMIZE", "RENAME", "REPAIR", "REPLACE", "REVOKE", "ROLLBACK", "SAVEPOINT", "SELECT"}
    | {"SET", "START", "TRUNCATE", "UNLOCK", "UPDATE", "WITH", "XA"}
)
_TYPES_WITH_SIZES: Final = frozenset(
    {"TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INTEGER", "BIGINT", "DECIMAL", "DEC", "NUMERIC", "FIXED", "NUMBER"}
    | {"FLOAT", "DOUBLE", "REAL", "PRECISION", "BIT", "CHAR", "CHARACTER", "NCHAR", "VARCHAR", "NVARCHAR", "VARCHAR2"}
    | {"VARYING", "VARCHARACTER", "BINARY", "VARBINARY", "RAW", "TEXT", "BLOB", "CLOB", "VECTOR"}
    | {"TIME", "DATETIME", "TIMESTAMP", "YEAR"}
)
_LISTS_OF_LABELS: Final = frozenset({"ENUM", "SET"})
_WORDS_BEFORE_EXPRESSIONS: Final = frozenset(
    {"AS", "DEFAULT", "IN", "AND", "OR", "NOT", "XOR", "LIKE", "BETWEEN", "WHEN", "THEN", "ELSE", "DIV", "MOD", "IS"}
    | {"REGEXP", "RLIKE", "SELECT", "UPDATE", "VALUES", "RETURN", "INTERVAL", "CASE", "BINARY", "WHERE", "ON", "BY"}
    | {"DISTINCT", "ALL", "DISTINCTROW", "STRAIGHT_JOIN", "HAVING"}
)
_WORDS_BEFORE_CHARSETS: Final = frozenset({"CHARSET", "SET", "COLLATE"})


@cache
def _charsets() -> frozenset[str]:
    """Return the names of character sets and collations."""
    return charset_names() | {*collation_names().values()}


def with_masked_texts(
    statements: pa.RecordBatch, flavor: Flavor, server_version: str | None, key: bytes | None
) -> pa.RecordBatch:
    """Return a batch of `statements` whose texts contain no values."""
    version = version_of(flavor, server_version)
    columns = ["kind", "sql_text", "default_schema", "sql_mode", "collation_server"]
    texts = [
        None if row["sql_text"] is None else _masked(row, flavor, version, key)
        for row in statements.select(columns).to_pylist()
    ]
    place = statements.schema.get_field_index("sql_text")
    return statements.set_column(place, statements.schema.field(place), pa.array(texts, pa.string()))


def _masked(row: Mapping[str, Any], flavor: Flavor, version: tuple[int, ...], key: bytes | None) -> str:
    text = row["sql_text"]
    if row["kind"] == "QUERY" and may_be_ddl(text):
        return _without_literals(row, flavor, version) or _not_understood(row, flavor, version, key)
    found = _WORD.match(text)
    verb = found[1].upper() if found and found[1].upper() in _VERBS else row["kind"]
    return f"-- masked: {verb}, digest {_digest(text, key)}"


def _digest(text: str, key: bytes | None) -> str:
    """Return the beginning of column `digest`: statements that differ only in values have the same one."""
    digest, _ = DigestReader().read(text)
    return digest_hash(digest, key)[:_DIGEST_DIGITS]


def _without_literals(row: Mapping[str, Any], flavor: Flavor, version: tuple[int, ...]) -> str | None:
    """Return a DDL statement with `'?'` and `0` for its literals, or None if it would not mean the same then."""
    from ingest.ddl.tokens import NotUnderstoodError, tokens_of

    if sets_sql_mode(row["sql_text"]) and any(mark in row["sql_text"] for mark in '"\\'):
        # The mode of the session, which is not logged, decides what is a literal.
        return None
    try:
        tokens = tokens_of(row["sql_text"], sql_mode_bits(row["sql_mode"]), flavor, version)
    except NotUnderstoodError:
        return None
    kept = " ".join(_token_texts(tokens, row["sql_text"]))
    before, after = (statement_actions({**row, "sql_text": text}, flavor, version) for text in (row["sql_text"], kept))
    return kept if _effects(before) == _effects(after) else None


def _effects(actions: list[Action]) -> list[Action]:
    # The detail of a statement that is not understood quotes it.
    return [replace(action, detail=None) if action.action == "not_understood" else action for action in actions]


def _token_texts(tokens: list[Any], text: str) -> list[str]:
    from sqlglot.tokenizer_core import TokenType

    texts: list[str] = []
    # The word before each open parenthesis, if it can be the type of a column: it follows a name. In an expression, the
    # same word is a function, such as char(65).
    opened: list[str] = []
    last = ""
    is_name, follows_name = False, False
    for token in tokens:
        kind, word = token.token_type, ""
        shown = text[token.start : token.end + 1]
        if kind == TokenType.L_PAREN:
            opened.append(last if follows_name else "")
        elif kind == TokenType.R_PAREN:
            opened = opened[:-1]
        elif kind == TokenType.VAR:
            word = token.text.upper()
        elif kind == TokenType.EQ:
            word = last
        elif kind == TokenType.NUMBER:
            shown = shown if opened and opened[-1] in _TYPES_WITH_SIZES else "0"
        elif kind in (TokenType.STRING, TokenType.NATIONAL_STRING):
            is_label = bool(opened) and opened[-1] in _LISTS_OF_LABELS
            is_charset = last in _WORDS_BEFORE_CHARSETS and token.text.lower() in _charsets()
            shown = shown if is_label or is_charset else "'?'"
        elif kind in (TokenType.HEX_STRING, TokenType.BIT_STRING, TokenType.BYTE_STRING):
            shown = "0"
        texts.append(shown)
        last = word
        follows_name = is_name
        is_name = kind == TokenType.IDENTIFIER or (kind == TokenType.VAR and word not in _WORDS_BEFORE_EXPRESSIONS)
    return texts


def _not_understood(row: Mapping[str, Any], flavor: Flavor, version: tuple[int, ...], key: bytes | None) -> str:
    """Return a text that is not understood either, so that the history of the schema becomes uncertain there.

    If the statement changes no table whatever it says, its first words are kept, so that no definition is lost.
    """
    from ingest.ddl.statements import OBJECTS_BESIDE_TABLES

    actions = statement_actions(row, flavor, version)
    digest = _digest(row["sql_text"], key)
    if not actions:
        return f"-- masked: {row['kind']}, digest {digest}"
    first, mark = actions[0], f"(masked_{digest}"
    names = [name for name in (first.schema_name, first.table_name) if name is not None]
    quoted = ".".join(f"`{name.replace('`', '``')}`" for name in names)
    is_of_table = first.table_name is not None and first.statement_type in ("CREATE TABLE", "ALTER TABLE")
    if is_of_table:
        return f"{first.statement_type} {quoted} {mark}"
    verb, _, named = first.statement_type.partition(" ")
    return f"{first.statement_type} {mark}" if named in OBJECTS_BESIDE_TABLES else f"{verb} {mark}"
