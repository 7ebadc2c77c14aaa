"""Printed statements, read back: by sqlglot's MySQL dialect, and compared with the plan.

This module does not use the writer of statements. A million statements have few shapes, so sqlglot reads only the first
statement of each shape. In the others, a strict reader of tokens finds the literals.
"""

import re
import struct
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import partial
from itertools import count, islice, zip_longest
from typing import TYPE_CHECKING, Final

from ingest.errors import BinloomError
from recover.undo.prove.parts import Literal, Part, Reading
from recover.undo.prove.shapes import ProvedShape, is_text_enough
from recover.undo.rows import literals as kinds
from recover.undo.rows.documents import DocumentError, members_of, printed, with_members
from recover.undo.rows.literals import Text
from recover.undo.rows.operations import Operation, Signature, signature
from recover.undo.tables.table import Column

if TYPE_CHECKING:
    from sqlglot import exp

# Names, words and signs are one token up to the next literal. A word before a quote would belong to a literal.
_TOKEN: Final = re.compile(
    r"""(?P<fixed>(?:`(?:[^`]|``)*` | <=> | [=(),.*\ ] | [A-Z]+(?:_[A-Z]+)*[0-9a-z]*(?!') | utf8mb4)+)
      | (?P<text>'[^'\\]*+(?:''[^'\\]*+)*+')
      | (?P<introduced>_utf8mb4\ X'(?:[0-9A-F]{2})*+')
      | (?P<hex>X'(?:[0-9A-F]{2})*+')
      | (?P<number>-?[0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)""",
    re.VERBOSE,
)
_NUMBERED: Final = re.compile(r"\?([0-9]+)\?")
# Text in ASCII and text as bytes alternate in the columns of a table.
_SHAPES_OF_A_SIGNATURE: Final = 16
# sqlglot reads a shorter literal in the place of a longer one: it takes a second for a megabyte.
_LONG: Final = 1000
_PLACES: Final = {kind: f"?{kind} " for kind in ("text", "introduced", "hex", "number")}


class UnprovedStatementError(BinloomError):
    """A statement, read back, is not the planned one. It is not printed."""


class StatementReader:
    """Compares statements with their plan, and remembers the shapes that sqlglot has read."""

    def __init__(self) -> None:
        self._shapes: dict[str, Reading] = {}
        self._proved: dict[Signature, list[ProvedShape]] = {}

    def prove(self, sql: str, operation: Operation) -> None:
        """Raise `UnprovedStatementError` unless a statement is exactly what an operation plans."""
        proved = self._proved.setdefault(signature(operation), [])
        if any(shape.proves(sql, operation) for shape in proved):
            return
        tokens = [*_tokens(sql)]
        found = [token for token in tokens if token[0] != "fixed"]
        shape = "".join(text if kind == "fixed" else _PLACES[kind] for kind, text in tokens)
        reading = self._shapes.get(shape)
        if reading is None:
            reading = self._shapes[shape] = _read([*map(_shortened, count(), tokens)])
        _compare(sql, reading, found, operation)
        if len(proved) < _SHAPES_OF_A_SIGNATURE:
            proved.append(ProvedShape(tokens, reading, operation))


def _tokens(sql: str) -> Iterator[Literal]:
    """Yield the literals of a statement, and what is between them as `fixed`."""
    at = 0
    while at < len(sql):
        token = _TOKEN.match(sql, at)
        if token is None:
            raise _unproved(sql, f"there is no token at character {at}")
        yield token.lastgroup or "", token[0]
        at = token.end()


def _shortened(number: int, token: Literal) -> Literal:
    """Return a literal that stands for a long one, and for no other of the statement."""
    kind, text = token
    if len(text) <= _LONG or kind == "fixed":
        return token
    return kind, f"'{number}'" if kind == "text" else f"{text[: text.index(chr(39))]}'{number:016X}'"


def _read(tokens: list[Literal]) -> Reading:
    """Read a statement with sqlglot; its literals must be the same, and in the same order, as in its tokens."""
    import sqlglot
    from sqlglot import exp

    sql = "".join(text for _, text in tokens)
    found = [token for token in tokens if token[0] != "fixed"]
    try:
        trees = sqlglot.parse(sql, read="mysql")
    except sqlglot.errors.SqlglotError as error:
        raise _unproved(sql, str(error)) from None
    tree = trees[0]
    if len(trees) != 1 or not isinstance(tree, exp.Insert | exp.Update | exp.Delete | exp.Select):
        raise _unproved(sql, "it is not one INSERT, UPDATE, DELETE or SELECT")
    places = iter(range(len(found)))
    parts: list[Part] = []
    for column, form, value in _values(sql, tree):
        if form == "keep" or isinstance(value, exp.Null):
            parts.append(Part(column, form, None))
            continue
        literals: list[exp.Expr] = [value]
        members: tuple[str, ...] = ()
        if form == "set" and isinstance(value, exp.JSONSet):
            form, literals, members = "document", *_document_parts(value)
        own = [*islice(places, len(literals))]
        if len(own) != len(literals) or not all(
            _same_literal(one, found[place]) for one, place in zip(literals, own, strict=True)
        ):
            raise _unproved(sql, f"sqlglot reads another value of {column}")
        parts.append(Part(column, form, own[0], len(own), members))
    limit = tree.args.get("limit")
    if limit is not None:
        parts_left = [*places]
        if len(parts_left) != 1 or found[parts_left[0]][1] != "1" or limit.expression.name != "1":
            raise _unproved(sql, "its limit is not 1")
    elif next(places, None) is not None:
        raise _unproved(sql, "it has a literal too many")
    known = {"this", "expression", "expressions", "where", "limit"}
    table = tree.this.this if isinstance(tree, exp.Insert) else tree.this
    if isinstance(tree, exp.Select):
        source = tree.find(exp.From)
        table = None if source is None else source.this
        known.add("from_")
        if [one.sql("mysql") for one in tree.expressions] != ["COUNT(*)"]:
            raise _unproved(sql, "it does not count rows")
    extra = {key for key, value in tree.args.items() if value} - known
    if not isinstance(table, exp.Table) or extra:
        raise _unproved(sql, f"it has other parts: {', '.join(sorted(extra))}")
    return Reading(type(tree).__name__.upper(), (table.db, table.name), tuple(parts), limit is not None)


def _values(
    sql: str, tree: "exp.Insert | exp.Update | exp.Delete | exp.Select"
) -> "Iterator[tuple[str, str, exp.Expr]]":
    """Yield column, form and value of everything that a statement sets or compares, in the order of its text."""
    from sqlglot import exp

    if isinstance(tree, exp.Insert):
        names, rows = tree.this.expressions, tree.expression.expressions
        if len(rows) != 1 or len(names) != len(rows[0].expressions):
            raise _unproved(sql, "it does not insert one row with a value for each column")
        for name, value in zip(names, rows[0].expressions, strict=True):
            yield name.name, "set", value
        return
    for assignment in tree.expressions if isinstance(tree, exp.Update) else ():
        column, value = assignment.this, assignment.expression
        if not isinstance(assignment, exp.EQ) or not isinstance(column, exp.Column):
            raise _unproved(sql, "an assignment is not one")
        keeps = isinstance(value, exp.Column)
        if keeps and value != column:
            raise _unproved(sql, f"{column.name} is set to another column")
        yield column.name, "keep" if keeps else "set", value
    where = tree.args.get("where")
    if where is None:
        raise _unproved(sql, "it has no WHERE")
    for condition in _conjuncts(where.this):
        columns = [*condition.this.find_all(exp.Column)]
        if len(columns) != 1 or not isinstance(condition, exp.EQ | exp.NullSafeEQ | exp.Is | exp.Like):
            raise _unproved(sql, f"a condition is not one on a column: {condition.sql('mysql')[:60]}")
        name = columns[0].name
        operator = {exp.EQ: "=", exp.NullSafeEQ: "<=>", exp.Is: "is", exp.Like: "LIKE"}[type(condition)]
        negation = "NOT " if condition.args.get("negate") else ""
        yield name, f"{_with_placeholder(condition.this)} {negation}{operator}", condition.expression


def _document_parts(value: "exp.JSONSet") -> "tuple[list[exp.Expr], tuple[str, ...]]":
    """Return the literals of a document with members, in the order of its text, and the expressions around them."""
    from sqlglot import exp

    literals: list[exp.Expr] = []
    forms: list[str] = []
    for part in (value.this, *value.expressions):
        is_literal = partial(_is_kind, (exp.Literal, exp.HexString, exp.Introducer, exp.Neg))
        found = [*filter(is_literal, part.dfs(prune=is_literal))]
        numbers = {id(one): exp.Var(this=f"?{number}?") for number, one in enumerate(found)}
        text = str(part.transform(_replaced, numbers, copy=False).sql("mysql"))
        # sqlglot finds literals in another order than that of the text.
        literals += [found[int(place)] for place in _NUMBERED.findall(text)]
        forms.append(_NUMBERED.sub("?", text))
    return literals, tuple(forms)


def _is_kind(kinds: "tuple[type[exp.Expr], ...]", node: "exp.Expr") -> bool:
    return isinstance(node, kinds)


def _replaced(node: "exp.Expr", others: "Mapping[int, exp.Expr]") -> "exp.Expr":
    return others.get(id(node), node)


def _with_placeholder(expression: "exp.Expr") -> str:
    from sqlglot import exp

    placed = expression.copy().transform(lambda node: exp.column("c") if isinstance(node, exp.Column) else node)
    return str(placed.sql("mysql"))


def _conjuncts(condition: "exp.Expr") -> "Iterator[exp.Expr]":
    from sqlglot import exp

    # The chain of ANDs leans to the left, and may be longer than the stack is deep.
    parts: list[exp.Expr] = []
    while isinstance(condition, exp.And):
        parts.append(condition.expression)
        condition = condition.this
    for part in (condition, *reversed(parts)):
        if isinstance(part, exp.Paren):
            yield from _conjuncts(part.this)
        else:
            yield part


def _same_literal(value: "exp.Expr", found: Literal) -> bool:
    """Return whether sqlglot reads the same value as the reader of tokens."""
    from sqlglot import exp

    kind, text = found
    if isinstance(value, exp.Introducer):
        return kind == "introduced" and value.name == "_utf8mb4" and value.expression.name == text[11:-1]
    if isinstance(value, exp.HexString):
        return kind == "hex" and value.name == text[2:-1]
    if isinstance(value, exp.Neg):
        return kind == "number" and isinstance(value.this, exp.Literal) and f"-{value.this.name}" == text
    if not isinstance(value, exp.Literal):
        return False
    if value.is_string:
        return kind == "text" and value.name == text[1:-1].replace("''", "'")
    return kind == "number" and value.name == text


def _compare(sql: str, reading: Reading, found: list[Literal], operation: Operation) -> None:
    table = operation.table
    if (reading.verb, reading.table) != (operation.verb, table.name):
        raise _unproved(sql, f"it should be {operation.verb} of {table.text}")
    if reading.has_limit != (operation.verb != "INSERT" and not table.row_key):
        raise _unproved(sql, "its limit is wrong")
    wanted = {**operation.key, **operation.guard}
    to_set, to_compare, to_keep = {*operation.values}, {*wanted}, {*operation.kept}
    for part in reading.parts:
        column = table.by_name.get(part.column)
        if column is None:
            raise _unproved(sql, f"it has no column {part.column}")
        literal = None if part.place is None else found[part.place]
        if part.form == "keep":
            to_keep.discard(part.column)
            is_right = part.column in operation.kept
        elif part.form == "set":
            value = operation.values.get(part.column)
            is_right = part.column in to_set and is_value(column, value, literal) and is_text_enough(column, value)
            to_set.discard(part.column)
        elif part.form == "document":
            assert part.place is not None
            literals = found[part.place : part.place + part.literals]
            is_right = _is_document(column, operation.values.get(part.column), literals, part.members)
            to_set.discard(part.column)
        elif part.column not in wanted:
            is_right = False
        elif _is_comparison(column, part.form, wanted[part.column], literal):
            is_right = True
            if part.form == _exact_form(column, wanted[part.column]) or (part.form, column.name) in _plain_key(
                operation
            ):
                to_compare.discard(part.column)
        else:
            is_right = False
        if not is_right:
            raise _unproved(sql, f"its value of {part.column} is not the planned one")
    if left := to_set | to_compare | to_keep:
        raise _unproved(sql, f"it lacks {', '.join(sorted(left))}")


def _plain_key(operation: Operation) -> set[tuple[str, str]]:
    """Return the key columns that `=` compares exactly."""
    columns = operation.table.by_name
    return {("c =", name) for name, value in operation.key.items() if _exact_form(columns[name], value) == "c <=>"}


def _exact_form(column: Column, value: Text) -> str:
    """Return the form of the condition that is true for one value only."""
    kind = column.data_type
    if value is None:
        return "c is"
    if kind in kinds.OPAQUE:
        return "HEX(c) <=>"
    if kind in kinds.TEXTS | kinds.LABELS:
        return "CAST(CAST(c AS CHAR CHARACTER SET utf8mb4) AS BINARY) <=>"
    if kind == "json":
        return "CAST(CAST(c AS CHAR) AS BINARY) <=>"
    if kind in kinds.FLOATS | kinds.DOUBLES and float(value) == 0:
        return "CAST(c AS CHAR) LIKE" if value.startswith("-") else "CAST(c AS CHAR) NOT LIKE"
    return "CAST(c AS CHAR) <=>" if kind in kinds.PRINTED else "c <=>"


def _is_comparison(column: Column, form: str, value: Text, literal: Literal | None) -> bool:
    """Return whether a condition is one of those that are true for a value; `c =` only finds the row."""
    if value is None or literal is None:
        return form == "c is" and literal is None and value is None
    if form not in (_exact_form(column, value), "c =", "c <=>"):
        return False
    kind = column.data_type
    if kind in kinds.OPAQUE:
        return literal == ("text", f"'{value[2:]}'")
    if kind in kinds.FLOATS | kinds.DOUBLES and float(value) == 0:
        return literal == (("text", "'%-%'") if form.endswith("LIKE") else ("number", "0e0"))
    return is_value(column, value, literal)


def is_value(column: Column, value: Text, literal: Literal | None) -> bool:
    """Return whether a literal is a value of a column."""
    if literal is None or value is None:
        return literal is None and value is None
    kind, text = literal
    data_type = column.data_type
    if data_type in kinds.INTEGERS | kinds.BITS | kinds.DECIMALS:
        return kind == "number" and "e" not in text and Decimal(text) == Decimal(value)
    if data_type in kinds.FLOATS:
        return kind == "number" and "e" in text and _packed("<f", text) == _packed("<f", value)
    if data_type in kinds.DOUBLES:
        return kind == "number" and "e" in text and _packed("<d", text) == _packed("<d", value)
    if data_type in kinds.BINARIES | kinds.OPAQUE:
        return kind == "hex" and text[2:-1] == value[2:]
    return kind != "number" and _characters(literal) == value


def _is_document(column: Column, value: Text, literals: list[Literal], members: tuple[str, ...]) -> bool:
    """Return whether a text and the members that are set in it are a document.

    Parameters
    ----------
    members
        The expressions of the text, and of the path and value of each member.
    """
    if value is None or column.data_type != "json":
        return False
    expected = members_of(value, column.documents)
    left = iter(literals)
    parts = [(form, [*islice(left, form.count("?"))]) for form in members]
    (form, (text, *_)), *others = parts
    if form != "CAST(? AS JSON)" or len(others) != 2 * len(expected):
        return False
    for (path_form, path), (form, own), member in zip(others[::2], others[1::2], expected, strict=True):
        if path_form != "?" or _characters(path[0]) != member.path:
            return False
        if _filled(form, own[1:]) != _filled(member.form, []) or _member_value(own[0]) != member.value:
            return False
    try:
        return with_members(_characters(text), [printed(member) for member in expected]) == value
    except DocumentError:
        return False


def _filled(form: str, literals: list[Literal]) -> str:
    """Return an expression with all literals but the first, and without spaces between its arguments."""
    first, *others = form.split("?")
    texts = [text for _, text in literals]
    return "".join([first, "?", *(part + text for part, text in zip_longest(others, texts, fillvalue=""))]).replace(
        ", ", ","
    )


def _member_value(literal: Literal) -> str | bytes | int:
    kind, text = literal
    if kind == "hex":
        return bytes.fromhex(text[2:-1])
    return int(text) if kind == "number" else _characters(literal)


def _characters(literal: Literal) -> str:
    """Return the characters of a literal that is a text, or its bytes in utf8mb4."""
    kind, text = literal
    if kind == "text":
        return text[1:-1].replace("''", "'")
    # Bytes that are no characters become halves of pairs, which no value has.
    return bytes.fromhex(text[text.index("'") + 1 : -1]).decode(errors="surrogateescape")


def _packed(format: str, text: str) -> bytes:
    return struct.pack(format, float(text))


def _unproved(sql: str, reason: str) -> UnprovedStatementError:
    shown = sql if len(sql) <= 200 else sql[:200] + "…"
    return UnprovedStatementError(
        f"A statement was not proved, so nothing is printed: {reason} ({shown}).",
        hint="This is a defect of binloom: report it with this message.",
    )
