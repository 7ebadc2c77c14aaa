"""Follow the columns of a query to the columns of the tables that it reads.

A column is made of all columns that its expression contains: those of a case's conditions, of a filter inside the
expression and of a window's partition and order too. Conditions that choose rows (where, having, qualify, the on and
using of a join) and the grouping are not sources of a column, nor are the rows that EXCEPT and INTERSECT compare with.
A literal and `count(*)` have no source. An element of an array is made of what the array is made of, a field of a
struct of what that field is made of.

If something is not known, a value consists of more columns, never of fewer; names that cannot be resolved raise
`NotFollowedError`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from binloom.site.origins import (
    ANY_COLUMN,
    NOTHING,
    NotFollowedError,
    Origins,
    Outputs,
    TableColumn,
    column_of,
    combined,
    merged,
)
from binloom.site.scopes import Relation, Scope

_DIALECT: Final = "spark"

# A column passes through one other column in each step of a recursion. SQL that Spark refuses may never come to an end.
_MOST_STEPS: Final = 100

# The result is one of the arguments or their elements, so it has their fields.
_KEEPS_FIELDS: Final = (
    exp.AnyValue,
    exp.Array,
    exp.ArrayAgg,
    exp.ArrayConcat,
    exp.ArrayDistinct,
    exp.ArraySlice,
    exp.ArrayUniqueAgg,
    exp.Coalesce,
    exp.Concat,
    exp.Distinct,
    exp.First,
    exp.FirstValue,
    exp.Flatten,
    exp.IgnoreNulls,
    exp.Lag,
    exp.Last,
    exp.LastValue,
    exp.Lead,
    exp.Paren,
    exp.Reverse,
)

# The result has the fields of an argument too, but all fields of the arguments decide which one it is or its order.
_COMPARES: Final = (exp.ArraySort, exp.Greatest, exp.Least, exp.Max, exp.Min)


def query_outputs(sql: str, tables: Mapping[str, Outputs]) -> Outputs:
    """Return the columns of a query with the columns of tables that they are made of.

    Parameters
    ----------
    tables
        Columns of tables by `schema.name`, in lower case, and of ephemeral models by the name of their CTE. Such a CTE
        is not followed further: the model is a table of its own.

    Raises
    ------
    NotFollowedError
        The query uses something whose columns are not known.
    """
    try:
        query = sqlglot.parse_one(sql, dialect=_DIALECT)
        if not isinstance(query, exp.Query):
            raise NotFollowedError("it is not a query")
        return _outputs(query, Scope(tables))
    except SqlglotError as error:
        raise NotFollowedError("sqlglot cannot parse it") from error
    except RecursionError as error:
        raise NotFollowedError("it is nested too deeply") from error


def fields_of_type(type: str) -> Origins:
    """Return the fields of a type such as `array<struct<name:string>>`, without columns."""
    if "struct<" not in type.lower():
        return NOTHING
    try:
        return _fields(exp.DataType.build(type, dialect=_DIALECT))
    except SqlglotError:
        return NOTHING


def _fields(type: exp.Expression | None, whole: frozenset[TableColumn] = frozenset()) -> Origins:
    if not isinstance(type, exp.DataType) or not type.is_type("struct", "array") or not type.expressions:
        return Origins(whole)
    if type.is_type("array"):
        return _fields(type.expressions[0], whole)
    return Origins(whole, {field.name: _fields(field.args.get("kind")) for field in type.expressions})


# Queries


def _outputs(query: exp.Query, scope: Scope) -> Outputs:
    """Return the columns of a query that begins in a scope."""
    scope = _with_ctes(query, scope)
    if isinstance(query, exp.Subquery):
        if query.args.get("joins") or not isinstance(query.this, exp.Query):
            raise NotFollowedError("a join is in parentheses")
        return _renamed(_outputs(query.this, scope), query.args.get("alias"))
    if isinstance(query, exp.SetOperation):
        return _set_operation(query, scope)
    if isinstance(query, exp.Select):
        return _selected(query, _from_clause(query, scope))
    raise NotFollowedError(f"{query.key} is not a query")


def _with_ctes(query: exp.Query, scope: Scope) -> Scope:
    clause = query.args.get("with_")
    if clause is None:
        return scope
    for cte in clause.expressions:
        name = cte.alias.lower()
        if name in scope.tables:
            scope = scope.with_cte(name, scope.tables[name])
        elif clause.args.get("recursive") and isinstance(cte.this, exp.SetOperation):
            scope = scope.with_cte(name, _recursive(cte, scope))
        else:
            scope = scope.with_cte(name, _renamed(_outputs(cte.this, scope), cte.args.get("alias")))
    return scope


def _recursive(cte: exp.Expression, scope: Scope) -> Outputs:
    """Follow a query that reads itself, until that adds no column."""
    found = _renamed(_outputs(cte.this.this, scope), cte.args.get("alias"))
    for _ in range(_MOST_STEPS):
        step = _renamed(_outputs(cte.this, scope.with_cte(cte.alias, found)), cte.args.get("alias"))
        if list(step) == list(found):
            return found
        found = step
    raise NotFollowedError(f"{cte.alias} adds fields without end")


def _set_operation(query: exp.SetOperation, scope: Scope) -> Outputs:
    left = _outputs(query.this, scope)
    if not isinstance(query, exp.Union):
        return left
    right = _outputs(query.expression, scope)
    if query.args.get("by_name"):
        return _union_by_name(left, right)
    if len(left) != len(right) or ANY_COLUMN in (name for name, _ in chain(left, right)):
        raise NotFollowedError("the columns of a union do not match")
    return [(name, merged([one, other])) for (name, one), (_, other) in zip(left, right, strict=True)]


def _union_by_name(left: Outputs, right: Outputs) -> Outputs:
    both = [(name, merged([one, column_of(right, name) or NOTHING])) for name, one in left]
    return [*both, *((name, other) for name, other in right if column_of(left, name) is None)]


def _renamed(outputs: Outputs, alias: exp.Expression | None) -> Outputs:
    """Apply the columns of an alias such as `t(a, b)`."""
    columns = alias.args.get("columns") if alias else None
    if not columns:
        return outputs
    if len(columns) != len(outputs):
        raise NotFollowedError(f"{alias} names another number of columns")
    return [(column.name, origins) for column, (_, origins) in zip(columns, outputs, strict=True)]


# The from clause


def _from_clause(select: exp.Select, scope: Scope) -> Scope:
    """Return the scope of a select's expressions."""
    scope = replace(scope, windows={window.name.lower(): window for window in select.args.get("windows") or ()})
    clause = select.args.get("from_")
    if clause is not None:
        scope = _joined(scope, clause.this)
        for join in [*(clause.this.args.get("joins") or ()), *(select.args.get("joins") or ())]:
            scope = _joined(scope, join.this, join)
    for lateral in select.args.get("laterals") or ():
        scope = _joined(scope, lateral)
    return scope


def _joined(scope: Scope, source: exp.Expression, join: exp.Join | None = None) -> Scope:
    relation = _relation(source, scope)
    if join is None:
        return scope.joined(relation, keys=(), side="", kind="")
    keys = [key.name.lower() for key in join.args.get("using") or ()]
    if join.method == "NATURAL":
        keys = [name.lower() for name, _ in scope.columns if column_of(relation.outputs, name) is not None]
    return scope.joined(relation, keys, join.side, join.kind)


def _relation(source: exp.Expression, scope: Scope) -> Relation:
    alias = source.args.get("alias")
    if source.args.get("pivots"):
        raise NotFollowedError("it pivots rows")
    if isinstance(source, exp.Table):
        if isinstance(source.this, exp.Identifier):
            return Relation(source.alias_or_name, source.db, _renamed(_table(source, scope), alias))
        return Relation(source.alias, "", _renamed(_generated(source.this, scope), alias))
    if isinstance(source, exp.Lateral):
        if isinstance(source.this, exp.Subquery):
            return Relation(source.alias, "", _renamed(_outputs(source.this, scope.inner()), alias))
        names = [column.name for column in (alias.args.get("columns") if alias else None) or ()]
        return Relation(source.alias, "", _generated(source.this, scope, names))
    if isinstance(source, exp.Values):
        return Relation(source.alias, "", _renamed(_values(source, scope), alias))
    if isinstance(source, exp.Subquery):
        # A query in the from clause does not see its neighbours.
        return Relation(source.alias, "", _outputs(source, replace(scope.inner(), outer=scope.outer)))
    raise NotFollowedError(f"{source.key} is in a from clause")


def _table(table: exp.Table, scope: Scope) -> Outputs:
    if not table.db and table.name.lower() in scope.ctes:
        return scope.ctes[table.name.lower()]
    name = f"{table.db}.{table.name}".lower()
    if name not in scope.tables:
        raise NotFollowedError(f"{name} is not a table of the project")
    return scope.tables[name]


def _values(values: exp.Values, scope: Scope) -> Outputs:
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in values.expressions]
    if len({len(row) for row in rows}) != 1:
        raise NotFollowedError("the rows of values differ in length")
    columns = zip(*rows, strict=True)
    return [(f"col{at}", merged(_all_of(column, scope))) for at, column in enumerate(columns, 1)]


# The select list


def _selected(select: exp.Select, scope: Scope) -> Outputs:
    """Return the columns of a select, each of which can use those before it."""
    found: list[tuple[str, Origins]] = []
    for expression in select.expressions:
        for name, origins in _columns(expression, scope):
            found.append((name, origins))
            scope = scope.with_alias(name, origins)
    return found


def _columns(expression: exp.Expression, scope: Scope) -> Outputs:
    """Return the columns that one expression of a select gives."""
    if isinstance(expression, exp.Star) or (expression.is_star and isinstance(expression, exp.Column)):
        return _starred(expression, scope)
    if isinstance(expression, exp.Aliases):
        return _generated(expression.this, scope, [name.name for name in expression.expressions])
    if isinstance(expression, exp.Alias) and _is_generator(expression.this):
        return _generated(expression.this, scope, [expression.alias])
    if _is_generator(expression):
        return _generated(expression, scope)
    return [(expression.alias_or_name or expression.sql(_DIALECT), origins_of(expression, scope))]


def _starred(expression: exp.Expression, scope: Scope) -> Outputs:
    """Return the columns of `*`, `t.*` or `struct.*`, without those of `except`."""
    star = expression.this if isinstance(expression, exp.Column) else expression
    if star.args.get("replace") or star.args.get("rename"):
        raise NotFollowedError("a star renames columns")
    outputs = scope.columns
    if isinstance(expression, exp.Column):
        parts = [part.name for part in expression.parts[:-1]]
        relation = scope.relation(parts)
        outputs = relation.outputs if relation else list(scope.value(parts).parts().items())
        if not outputs:
            raise NotFollowedError(f"the fields of {'.'.join(parts)} are not known")
    left_out = {column.name.lower() for column in star.args.get("except_") or ()}
    if any(len(column.parts) > 1 for column in star.args.get("except_") or () if isinstance(column, exp.Column)):
        raise NotFollowedError("a star leaves out a field")
    return [(name, origins) for name, origins in outputs if name.lower() not in left_out]


# Generators


def _generator(expression: exp.Expression) -> str:
    """Return the name of a function that gives rows, without `_outer`; empty for another expression."""
    name = expression.name if isinstance(expression, exp.Anonymous) else expression.key
    name = name.lower().lstrip("_").replace("_", "").removesuffix("outer")
    return name if name in ("inline", "explode", "posexplode", "stack", "range") else ""


def _is_generator(expression: exp.Expression) -> bool:
    return isinstance(expression, exp.Func) and _generator(expression) not in ("", "range")


def _generated(expression: exp.Expression, scope: Scope, names: Sequence[str] = ()) -> Outputs:
    """Return the columns of a function that gives rows, under the names that the query gives them."""
    kind = _generator(expression)
    arguments = list(_all_of(_children(expression), scope))
    if kind == "range":
        columns: list[tuple[str, Origins]] = [("id", combined(arguments))]
    elif kind == "stack":
        columns = _stacked(expression, arguments)
    elif kind == "inline":
        elements = merged(arguments)
        columns = list(elements.parts().items()) or [(name, elements) for name in names]
    elif kind == "explode":
        elements = merged(arguments)
        # A map gives two columns, which only their names tell from the elements of an array.
        columns = [("key", elements.flat()), ("value", elements)] if len(names) == 2 else [("col", elements)]
    elif kind == "posexplode":
        elements = merged(arguments)
        columns = [("pos", elements.flat()), ("col", elements)]
        if len(names) == 3:
            columns[1:] = [("key", elements.flat()), ("value", elements)]
    else:
        raise NotFollowedError(f"{expression.sql(_DIALECT)[:60]} gives unknown columns")
    if not columns or (names and len(names) != len(columns)):
        raise NotFollowedError(f"the columns of {kind} are not known")
    return list(zip(names, (origins for _, origins in columns), strict=True)) if names else columns


def _stacked(expression: exp.Expression, arguments: Sequence[Origins]) -> list[tuple[str, Origins]]:
    rows = next(_children(expression))
    if not rows.is_int:
        raise NotFollowedError("stack has an unknown number of rows")
    cells = arguments[1:]
    width = -(-len(cells) // int(rows.name))
    return [(f"col{at}", merged(cells[at::width])) for at in range(width)]


# Expressions


def origins_of(expression: exp.Expression, scope: Scope) -> Origins:
    """Return what the value of an expression is made of."""
    if isinstance(expression, exp.Column):
        return scope.value([part.name for part in expression.parts])
    if isinstance(expression, exp.Identifier):
        return _parameter(expression.name, scope)
    if isinstance(expression, exp.Alias):
        return origins_of(expression.this, scope)
    if isinstance(expression, exp.Dot) and isinstance(expression.expression, exp.Identifier):
        return origins_of(expression.this, scope).field(expression.expression.name)
    if isinstance(expression, exp.Struct):
        return _struct(expression, scope)
    if isinstance(expression, exp.Query):
        return combined(origins for _, origins in _outputs(expression, scope.inner()))
    if isinstance(expression, exp.Cast):
        return _cast(expression, scope)
    if isinstance(expression, exp.Case | exp.If):
        return _branches(expression, scope)
    if isinstance(expression, exp.Window):
        return _window(expression, scope)
    if isinstance(expression, exp.Bracket | exp.ArgMax | exp.ArgMin | exp.Filter):
        others = (child for child in _children(expression) if child is not expression.this)
        return merged([origins_of(expression.this, scope), combined(_all_of(others, scope))])
    if isinstance(expression, exp.Count) and isinstance(expression.this, exp.Star):
        return NOTHING
    if isinstance(expression, exp.Star):
        raise NotFollowedError("a star is inside an expression")
    if any(isinstance(child, exp.Lambda) for child in _children(expression)):
        return _higher_order(expression, scope)
    parts = list(_all_of(_children(expression), scope))
    if isinstance(expression, _COMPARES):
        return merged([*parts, combined(parts)])
    return merged(parts) if isinstance(expression, _KEEPS_FIELDS) else combined(parts)


def _children(expression: exp.Expression) -> Iterator[exp.Expression]:
    """Yield the operands of an expression; a type is none."""
    return (child for child in expression.iter_expressions() if not isinstance(child, exp.DataType))


def _all_of(expressions: Iterable[exp.Expression], scope: Scope) -> Iterator[Origins]:
    return (origins_of(expression, scope) for expression in expressions)


def _parameter(name: str, scope: Scope) -> Origins:
    for parameter, origins in scope.parameters.items():
        if parameter.lower() == name.lower():
            return origins
    raise NotFollowedError(f"nothing has the name {name}")


def _struct(struct: exp.Struct, scope: Scope) -> Origins:
    fields: dict[str, Origins] = {}
    for field in struct.expressions:
        if not isinstance(field, exp.PropertyEQ) or field.name in fields:
            return combined(_all_of(struct.expressions, scope))
        fields[field.name] = origins_of(field.expression, scope)
    return Origins(fields=fields)


def _cast(cast: exp.Cast, scope: Scope) -> Origins:
    value = origins_of(cast.this, scope)
    target = _fields(cast.to, value.all())
    same_names = [name.lower() for name in target.fields] == [name.lower() for name in value.fields]
    # Spark matches the fields of a cast by position.
    return value if same_names else target


def _branches(expression: exp.Expression, scope: Scope) -> Origins:
    """Follow a case or an if: its conditions decide on the value as a whole."""
    if isinstance(expression, exp.If):
        conditions, values = [expression.this], [expression.args.get("true"), expression.args.get("false")]
    else:
        branches = expression.args["ifs"]
        conditions = [expression.this, *(branch.this for branch in branches)]
        values = [*(branch.args["true"] for branch in branches), expression.args.get("default")]
    given = _all_of((value for value in values if value is not None), scope)
    asked = _all_of((condition for condition in conditions if condition is not None), scope)
    return merged([*given, combined(asked)])


def _window(window: exp.Window, scope: Scope) -> Origins:
    value = origins_of(window.this, scope)
    return merged([value, combined(_all_of(_window_clauses(window, scope), scope))])


def _window_clauses(window: exp.Expression, scope: Scope) -> list[exp.Expression]:
    """Return the partition and the order of a window, and of the named window that it is based on."""
    clauses = [*(window.args.get("partition_by") or ()), *filter(None, [window.args.get("order")])]
    if not window.alias:
        return clauses
    named = scope.windows.get(window.alias.lower())
    if named is None:
        raise NotFollowedError(f"nothing has the name {window.alias}")
    return [*clauses, *_window_clauses(named, scope)]


# Functions with lambda functions


def _higher_order(function: exp.Expression, scope: Scope) -> Origins:
    lambdas = [child for child in _children(function) if isinstance(child, exp.Lambda)]
    given = list(_all_of((child for child in _children(function) if not isinstance(child, exp.Lambda)), scope))
    if isinstance(function, exp.Reduce):
        return _aggregate(function, scope)
    name = function.name.lower() if isinstance(function, exp.Anonymous) else ""
    parameters = given if name == "zip_with" else [merged(given)] * 3
    bodies = [_applied(body, parameters, scope) for body in lambdas]
    if isinstance(function, exp.Transform) or name == "zip_with":
        return merged(bodies)
    if isinstance(function, exp.ArrayFilter | exp.ArraySort) or name == "map_filter":
        return merged([*given, combined(bodies)])
    return combined([*given, *bodies])


def _aggregate(function: exp.Reduce, scope: Scope) -> Origins:
    """Follow an aggregate: each step adds to the one before, until nothing new is added."""
    elements, total = origins_of(function.this, scope), origins_of(function.args["initial"], scope)
    for _ in range(_MOST_STEPS):
        step = merged([total, _applied(function.args["merge"], [total, elements], scope)])
        if step == total:
            finish = function.args.get("finish")
            return _applied(finish, [total], scope) if finish else total
        total = step
    raise NotFollowedError("an aggregate adds fields without end")


def _applied(body: exp.Expression, arguments: Sequence[Origins], scope: Scope) -> Origins:
    if not isinstance(body, exp.Lambda):
        return origins_of(body, scope)
    names = [parameter.name for parameter in body.expressions]
    return origins_of(body.this, scope.with_parameters(dict(zip(names, arguments, strict=False))))
