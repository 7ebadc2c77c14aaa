"""Primary keys as conditions on `row_changes`: of one row by its old and its new key, and of a range of keys."""

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from ingest.errors import UsageError
from ingest.words import counted
from recover.selection.catalog import Column, Kind, TableVersion
from recover.selection.comparison import canonical, compare, image_value, is_one_of, rank
from recover.selection.filters import key_parts, key_text
from recover.selection.where import IMAGES, of_versions

if TYPE_CHECKING:
    from sqlglot import exp


def of_keys(keys: Sequence[str], allowed: Sequence[TableVersion]) -> tuple["exp.Expr", tuple[str, ...]]:
    """Return the condition that a row had one of these keys, before the change or after it.

    The keys are returned too, as `pk_values` has them, if they are the same and known exactly in all tables. Then the
    condition is `_of_exact_keys`.
    """
    from sqlglot import exp

    conditions: dict[str, tuple[exp.Expr, list[TableVersion]]] = {}
    exact: list[str] = []
    has_only_exact = True
    for of_these in _by_key(allowed):
        bound = [one for key in keys if (one := _of_key(key, of_these[0], keys_of_all=allowed)) is not None]
        exact = [one for one in bound if isinstance(one, str)]
        others = [one for one in bound if not isinstance(one, str)]
        has_only_exact &= not others
        if exact:
            others.append(_of_exact_keys(exact))
        if others:
            condition = exp.or_(*others)
            conditions.setdefault(condition.sql(), (condition, []))[1].extend(of_these)
    whole = _by_versions(list(conditions.values()), allowed)
    is_exact = has_only_exact and whole == _of_exact_keys(exact)
    return whole, tuple(exact) if is_exact else ()


def _of_exact_keys(texts: Sequence[str]) -> "exp.Expr":
    """Compare the hash, which has a bloom filter, and the key itself."""
    from sqlglot import exp

    hashes = [sha256(text.encode()).hexdigest() for text in texts]
    old = exp.and_(is_one_of("pk_hash", hashes), is_one_of("pk_values", texts))
    return exp.or_(old, is_one_of("pk_values_after", texts))


def _of_key(key: str, version: TableVersion, keys_of_all: Sequence[TableVersion]) -> "str | exp.Expr | None":
    """Return a key as `pk_values` has it, or a condition if not all of its text is known; None if it does not fit.

    Raises
    ------
    UsageError
        The key fits no table.
    """
    columns = version.key_columns
    try:
        named = named_key(key, version)
        texts = [canonical(value, column) for column, value in named.items()]
        if len(named) == len(columns) and all(text is not None for text in texts):
            by_column = dict(zip(named, texts, strict=True))
            return key_text(by_column[column] or "" for column in columns)
        return _in_either_image(named)
    except UsageError:
        if any(_fits(key, other) for other in keys_of_all):
            return None
        raise


def _fits(key: str, version: TableVersion) -> bool:
    try:
        for column, value in named_key(key, version).items():
            canonical(value, column)
            compare(_equal(), image_value("row_after", column), column, value)
    except UsageError:
        return False
    return True


def _equal() -> type["exp.Binary"]:
    from sqlglot import exp

    return exp.EQ


def named_key(key: str, version: TableVersion) -> dict[Column, str]:
    """Return the columns of a primary key and their values, as typed: `column=value|column=value`, or all values.

    Raises
    ------
    UsageError
        The key does not have as many values as the primary key has columns.
    """
    by_name = {column.name.lower(): column for column in version.key_columns}
    parts = key_parts(key)
    pairs = [part.partition("=") for part in parts]
    if all(sign and name.strip().lower() in by_name for name, sign, _ in pairs):
        return {by_name[name.strip().lower()]: value for name, _, value in pairs}
    others = [name.strip() for name, sign, _ in pairs if sign and name.strip().lower() not in by_name]
    are_numbers = all(column.kind is Kind.NUMBER for column in version.key_columns)
    if others and are_numbers and version.column(others[0]) is not None:
        raise UsageError(
            f"{others[0]} is no column of the primary key of {version.name} ({', '.join(version.primary_key)}).",
            hint=f'Find its rows with `binloom query --table {version.name} --where "{parts[0]}"`.',
        )
    if not by_name or len(parts) != len(by_name):
        raise _wrong_parts(key, version)
    return dict(zip(version.key_columns, parts, strict=True))


def _in_either_image(named: dict[Column, str]) -> "exp.Expr":
    from sqlglot import exp

    return exp.or_(
        *(
            exp.and_(*(compare(exp.EQ, image_value(image, column), column, value) for column, value in named.items()))
            for image in IMAGES.values()
        )
    )


def of_key_range(first: str | None, last: str | None, allowed: Sequence[TableVersion]) -> "exp.Expr":
    """Return the condition that a row had a key in a range, before the change or after it; both ends are included.

    Raises
    ------
    UsageError
        A bound does not fit the key, or no key is in the range.
    """
    from sqlglot import exp

    groups = _by_key(allowed)
    conditions: list[tuple[exp.Expr, list[TableVersion]]] = []
    for of_these in groups:
        ranges = []
        for image in IMAGES.values():
            bounds = []
            if first is not None:
                bounds.append(_bound(exp.GT, first, of_these[0], image))
            if last is not None:
                bounds.append(_bound(exp.LT, last, of_these[0], image))
            ranges.append(exp.and_(*bounds))
        conditions.append((exp.or_(*ranges), of_these))
    if first is not None and last is not None and all(_is_backwards(first, last, one[0]) for one in groups):
        raise UsageError(
            f"--key-from {first} is after --key-to {last}, so no key is in the range.",
            hint="Give the first key of the range with --key-from and the last one with --key-to. Numbers are compared"
            " as numbers, and texts by their characters: capital letters come before small ones.",
        )
    return _by_versions(conditions, allowed)


def _is_backwards(first: str, last: str, version: TableVersion) -> bool:
    """Return whether the first of two keys is sorted after the last; a key may lack its last columns."""
    for column, one, other in zip(version.key_columns, key_parts(first), key_parts(last), strict=False):
        low, high = rank(one, column), rank(other, column)
        if low != high:
            # Both are of the column's kind.
            return bool(low > high)  # type: ignore[operator]
    return False


def _bound(operator: type["exp.Binary"], key: str, version: TableVersion, image: str) -> "exp.Expr":
    """Compare the first columns of a key, one after the other, as a server sorts them; the bound is in the range."""
    from sqlglot import exp

    values = key_parts(key)
    if len(values) > len(version.key_columns):
        raise _wrong_parts(key, version)
    pairs = list(zip(version.key_columns, values, strict=False))
    column, value = pairs[-1]
    last: type[exp.Binary] = exp.GTE if operator is exp.GT else exp.LTE
    found = compare(last, image_value(image, column), column, value)
    for column, value in reversed(pairs[:-1]):
        text = image_value(image, column)
        same = compare(exp.EQ, text.copy(), column, value)
        found = exp.or_(compare(operator, text, column, value), exp.and_(same, found))
    return found


def _by_key(allowed: Sequence[TableVersion]) -> list[list[TableVersion]]:
    """Return the versions that have a primary key, grouped by the names and types of its columns."""
    groups: dict[tuple[object, ...], list[TableVersion]] = {}
    for version in allowed:
        if version.primary_key:
            alike = tuple((one.name, one.kind, one.digits, one.fixed_bytes) for one in version.key_columns)
            groups.setdefault(alike, []).append(version)
    if not groups:
        tables = ", ".join(sorted({version.name for version in allowed}))
        raise UsageError(f"{tables} has no primary key.", hint="Select its rows by --where instead of --key.")
    return list(groups.values())


def _by_versions(
    conditions: Sequence[tuple["exp.Expr", list[TableVersion]]], allowed: Sequence[TableVersion]
) -> "exp.Expr":
    """Return the conditions, each for its own versions of tables."""
    from sqlglot import exp

    if len(conditions) == 1 and len(conditions[0][1]) == len(allowed):
        return conditions[0][0]
    return exp.or_(*(exp.and_(of_versions(of_these), condition) for condition, of_these in conditions))


def _wrong_parts(key: str, version: TableVersion) -> UsageError:
    names = "|".join(column.name for column in version.key_columns)
    columns = counted(len(version.key_columns), "column")
    return UsageError(
        f"{key!r} does not fit the primary key of {version.name}, which has {columns}.",
        hint=f"Give the values in the order {names}, or COLUMN=VALUE.",
    )
