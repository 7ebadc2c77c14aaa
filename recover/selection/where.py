"""Conditions on the values of a row, in MySQL's syntax: `status = 'new' and after.total > 100`.

`before.` and `after.` name a row image. A condition with a plain column name is true if the row before the change or
the row after it fulfils it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from ingest.errors import UsageError
from recover.selection.catalog import Column, Kind, TableVersion, UnknownNameError, unknown_name
from recover.selection.comparison import (
    MismatchError,
    Value,
    assert_quoted,
    compare,
    compare_columns,
    image_value,
    is_in_image,
    never_equal,
)
from recover.selection.fitting import Fitting

if TYPE_CHECKING:
    from sqlglot import exp

IMAGES: Final = {"before": "row_before", "after": "row_after"}
ESCAPE: Final = "\\"


@dataclass(frozen=True)
class Condition:
    """A condition as a person typed it, parsed but without the tables that it is about."""

    text: str
    tree: "exp.Expr"

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Return the condition in a text.

        Raises
        ------
        UsageError
            The text is not a condition, or has too many parts within each other.
        """
        import sqlglot
        from sqlglot import exp

        try:
            tree = exp.condition(text, dialect="mysql")
        except sqlglot.errors.SqlglotError:
            raise UsageError(f"{text!r} is not a condition.", hint=_EXAMPLE) from None
        except RecursionError:
            raise _too_deep(text) from None
        if _depth(tree) > _DEEPEST:
            raise _too_deep(text)
        return cls(text, tree)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns, each once."""
        from sqlglot import exp

        return tuple(dict.fromkeys(column.name for column in self.tree.find_all(exp.Column)))

    def bound(self, versions: Sequence[TableVersion]) -> "tuple[exp.Expr, tuple[str, ...]]":
        """Return the condition on `row_changes`, for rows of these versions of tables, and the notes on it.

        Raises
        ------
        UsageError
            No version has a column, a value fits the type of its column in no version, or the condition has another
            part than comparisons.
        """
        from sqlglot import exp

        conditions, fitting = [], Fitting()
        for columns, of_these in _by_columns(self.columns, versions):
            bound = self._either_image(columns, of_these, fitting)
            conditions.append(bound if len(of_these) == len(versions) else exp.and_(bound, of_versions(of_these)))
        fitting.assert_all_fit()
        return exp.or_(*conditions), fitting.notes

    def _either_image(
        self, columns: Mapping[str, Column], versions: Sequence[TableVersion], fitting: Fitting
    ) -> "exp.Expr":
        from sqlglot import exp

        bound = [_Binding(self.text, columns, image, versions, fitting).bound(self.tree) for image in IMAGES.values()]
        has_plain_column = any(not column.table for column in self.tree.find_all(exp.Column))
        return exp.or_(*bound) if has_plain_column else bound[0]


# sqlglot reads and writes a part within another by recursion: it fails at 40 of them.
_DEEPEST: Final = 30
# Characters of a condition in a message.
_LONGEST: Final = 60
_EXAMPLE: Final = "Give one such as \"status = 'new' and after.total > 100\"."


def _depth(tree: "exp.Expr") -> int:
    """Return how many parts of a condition are within each other; a chain of AND or OR is none."""
    from sqlglot import exp

    deepest = 0
    parts = [(tree, 1)]
    while parts:
        part, depth = parts.pop()
        deepest = max(deepest, depth)
        if isinstance(part, exp.Connector):
            parts += [(each, depth) for each in part.flatten(unnest=False)]
        else:
            parts += [(each, depth + 1) for each in part.iter_expressions()]
    return deepest


def _too_deep(text: str) -> UsageError:
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
    return UsageError(
        f"The condition {shown!r} has more than {_DEEPEST} parts within each other.",
        hint="Leave out parentheses and NOT, or use IN: AND and OR between many terms need no parentheses.",
    )


def of_versions(versions: Sequence[TableVersion]) -> "exp.Expr":
    """Return the condition that a change is of one of these versions of tables."""
    from sqlglot import exp

    names = [exp.Literal.string(version.table_version_id) for version in versions]
    return exp.In(this=exp.column("table_version_id"), expressions=names)


def columns_of(name: str, versions: Sequence[TableVersion]) -> dict[str, list[TableVersion]]:
    """Return the spellings of a column's name, each with the versions that have it.

    Raises
    ------
    UnknownNameError
        No version has the column.
    """
    found: dict[str, list[TableVersion]] = {}
    for version in versions:
        if (column := version.column(name)) is not None:
            found.setdefault(column.name, []).append(version)
    if not found:
        tables = sorted({version.name for version in versions})
        where = tables[0] if len(tables) == 1 else "the selected tables"
        known = (one.name for each in versions for one in each.columns)
        error = unknown_name(f"There is no column {name!r} in {where}.", name, known)
        raise UnknownNameError(error.message, hint=f"{error.hint} A text has quotes: '{name}'.")
    return found


def _by_columns(
    names: Sequence[str], versions: Sequence[TableVersion]
) -> Iterator[tuple[dict[str, Column], list[TableVersion]]]:
    """Yield columns by the name that was typed, and the versions in which they compare alike."""
    for name in names:
        columns_of(name, versions)
    groups: dict[tuple[object, ...], tuple[dict[str, Column], list[TableVersion]]] = {}
    for version in versions:
        columns = {name: column for name in names if (column := version.column(name)) is not None}
        if len(columns) == len(names):
            alike = tuple((one.name, one.kind, one.digits, one.labels, one.fixed_bytes) for one in columns.values())
            groups.setdefault(alike, (columns, []))[1].append(version)
    if not groups:
        raise UsageError(
            f"No selected table has all of the columns {', '.join(names)}.", hint="Give one condition for each table."
        )
    yield from groups.values()


class _Binding:
    """Translation of a condition, with the image of plain column names."""

    def __init__(
        self,
        text: str,
        columns: Mapping[str, Column],
        image: str,
        versions: Sequence[TableVersion],
        fitting: Fitting,
    ) -> None:
        self._text = text
        self._columns = columns
        self._image = image
        self._versions = versions
        self._fitting = fitting

    def bound(self, node: "exp.Expr") -> "exp.Expr":
        """Return a part of the condition as an expression on `row_changes`."""
        from sqlglot import exp

        match node:
            case exp.Paren():
                return exp.paren(self.bound(node.this))
            case exp.And() | exp.Or():
                connect = exp.and_ if isinstance(node, exp.And) else exp.or_
                # Each term is a new expression, and copies of all terms for each term would take minutes.
                return connect(*(self.bound(part) for part in node.flatten()), copy=False)
            case exp.Not():
                return exp.not_(self.bound(node.this))
            case exp.Is() if isinstance(node.expression, exp.Null):
                return self._is_null(node.this)
            case exp.NullSafeEQ():
                return self._null_safe(node)
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                return self._comparison(type(node), node.left, node.right)
            case exp.In() if node.expressions:
                equals = (self._comparison(exp.EQ, node.this, each) for each in node.expressions)
                return exp.paren(exp.or_(*equals, copy=False), copy=False)
            case exp.Between():
                low = self._comparison(exp.GTE, node.this, node.args["low"])
                return exp.paren(exp.and_(low, self._comparison(exp.LTE, node.this, node.args["high"])))
            case exp.Like():
                like = self._like(node)
                return exp.not_(like) if node.args.get("negate") else like
            case _:
                raise self._not_understood(node)

    def _comparison(self, operator: type["exp.Binary"], left: "exp.Expr", right: "exp.Expr") -> "exp.Expr":
        from sqlglot import exp

        if not isinstance(left, exp.Column):
            if not isinstance(right, exp.Column):
                raise self._not_understood(right if isinstance(left, exp.Literal) else left)
            turned = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE}
            operator, left, right = turned.get(operator, operator), right, left
        if isinstance(right, exp.Null):
            raise UsageError(
                f"{self._text!r} compares with NULL, which is never true.", hint="Write IS NULL or IS NOT NULL."
            )
        if isinstance(right, exp.Column):
            return self._with_column(operator, left, right)
        return self._with_value(operator, left, right)

    def _with_column(self, operator: type["exp.Binary"], left: "exp.Column", right: "exp.Column") -> "exp.Expr":
        one, other = self._column(left), self._column(right)
        return self._if_it_has_a_result(
            right, one[1], lambda: compare_columns(operator, one, other), lambda: _shown(operator, left, right)
        )

    def _with_value(self, operator: type["exp.Binary"], left: "exp.Column", right: "exp.Expr") -> "exp.Expr":
        from sqlglot import exp

        text, column = self._column(left)
        value = self._value(right)
        is_equality = operator in (exp.EQ, exp.NEQ)
        if (typed := _number_without_quotes(right)) is not None:
            assert_quoted(typed, value, column)
            if column.kind is Kind.TEXT and not is_equality:
                note = f"{_shown(operator, left, right)} compares texts: '10' is less than '9'"
                self._fitting.tell(column, self._versions, note)

        def compared() -> "exp.Expr":
            return compare(operator, text, column, value)

        if not is_equality:
            return self._if_it_has_a_result(right, column, compared, lambda: _shown(operator, left, right))
        return self._fitting.bound(
            right,
            compared,
            column,
            self._versions,
            otherwise=lambda: never_equal(operator, text),
            note=lambda: f"no value equals {right.sql('mysql')}",
        )

    def _if_it_has_a_result(
        self, part: "exp.Expr", column: Column, bind: "Callable[[], exp.Expr]", shown: Callable[[], str]
    ) -> "exp.Expr":
        """Return a comparison; NULL where it has no meaning, so that NOT does not make it true either."""
        from sqlglot import exp

        return self._fitting.bound(
            part,
            bind,
            column,
            self._versions,
            otherwise=lambda: exp.cast(exp.null(), "boolean"),
            note=lambda: f"{shown()} is neither true nor false",
        )

    def _column(self, node: "exp.Expr") -> tuple["exp.Expr", Column]:
        from sqlglot import exp

        if not isinstance(node, exp.Column):
            raise self._not_understood(node)
        column = self._columns[node.name]
        return image_value(self._image_of(node), column), column

    def _image_of(self, node: "exp.Column") -> str:
        if not node.table:
            return self._image
        if node.table.lower() not in IMAGES or node.args.get("db"):
            raise UsageError(
                f"{node.sql('mysql')} in {self._text!r} is not a column of a row image.",
                hint="Write before.COLUMN, after.COLUMN or COLUMN; --table selects a table.",
            )
        return IMAGES[node.table.lower()]

    def _value(self, node: "exp.Expr") -> Value:
        from sqlglot import exp

        match node:
            case exp.Literal() if node.is_string:
                return str(node.this)
            case exp.Literal():
                return Decimal(str(node.this))
            case exp.Neg(this=exp.Literal() as number) if not number.is_string:
                return -Decimal(str(number.this))
            case exp.HexString():
                digits = str(node.this)
                return bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2))
            case exp.Boolean():
                return Decimal(int(node.this))
            case exp.Introducer() | exp.Cast():
                return self._value(node.expression if isinstance(node, exp.Introducer) else node.this)
            case _:
                raise self._not_understood(node)

    def _is_null(self, node: "exp.Expr") -> "exp.Expr":
        from sqlglot import exp

        text, _ = self._column(node)
        return self._if_in_image(node, exp.Is(this=text, expression=exp.null()))

    def _null_safe(self, node: "exp.NullSafeEQ") -> "exp.Expr":
        from sqlglot import exp

        if isinstance(node.right, exp.Null):
            return self._is_null(node.left)
        equal = self._comparison(exp.EQ, node.left, node.right)
        column = node.left if isinstance(node.left, exp.Column) else node.right
        return self._if_in_image(column, exp.Coalesce(this=equal, expressions=[exp.false()]))

    def _if_in_image(self, node: "exp.Expr", condition: "exp.Expr") -> "exp.Expr":
        """Return a condition that is NULL if the row image lacks the column: absent is not the same as NULL."""
        from sqlglot import exp

        if not isinstance(node, exp.Column):
            raise self._not_understood(node)
        present = is_in_image(self._image_of(node), self._columns[node.name])
        return exp.Case(ifs=[exp.If(this=present, true=condition)])

    def _like(self, node: "exp.Expr") -> "exp.Expr":
        from sqlglot import exp

        text, column = self._column(node.this)
        pattern = node.expression
        if not isinstance(pattern, exp.Literal):
            raise self._not_understood(node)

        def like() -> "exp.Expr":
            if column.kind is Kind.BINARY:
                raise MismatchError(
                    f"{node.sql('mysql')} in {self._text!r} is not supported: column {column.name} is"
                    f" {column.shown_type}.",
                    hint="Compare its bytes: =, <, IN, BETWEEN.",
                )
            # sqlglot's reader already resolved the escapes of the literal; LIKE has its own.
            found = exp.Like(this=text, expression=exp.Literal.string(str(pattern.this)))
            return exp.Escape(this=found, expression=exp.Literal.string(ESCAPE))

        return self._if_it_has_a_result(pattern, column, like, lambda: node.sql("mysql"))

    def _not_understood(self, node: "exp.Expr") -> UsageError:
        return UsageError(
            f"{node.sql('mysql')} in {self._text!r} is not supported.",
            hint="A condition compares columns with values: =, !=, <, <=, >, >=, <=>, IN, BETWEEN, LIKE, IS NULL, AND,"
            " OR, NOT.",
        )


def _shown(operator: type["exp.Binary"], left: "exp.Expr", right: "exp.Expr") -> str:
    return operator(this=left.copy(), expression=right.copy()).sql("mysql")


def _number_without_quotes(node: "exp.Expr") -> str | None:
    """Return a number as it was typed; None if a value is something else."""
    from sqlglot import exp

    match node:
        case exp.Neg(this=number):
            return None if (typed := _number_without_quotes(number)) is None else f"-{typed}"
        case exp.Literal():
            return None if node.is_string else str(node.this)
        case exp.Boolean():
            return node.sql("mysql")
        case exp.Introducer() | exp.Cast():
            return _number_without_quotes(node.expression if isinstance(node, exp.Introducer) else node.this)
    return None
