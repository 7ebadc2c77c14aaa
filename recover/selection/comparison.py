"""Comparison of values by the type of their column, though every value is stored as text.

Each function returns an expression of sqlglot that DuckDB and Spark answer alike. As in SQL, a comparison with NULL is
neither true nor false.
"""

import re
import socket
import struct
import uuid
from collections.abc import Sequence
from datetime import datetime
from decimal import ROUND_FLOOR, Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final

from ingest.errors import UsageError
from recover.selection.catalog import Column, Kind

if TYPE_CHECKING:
    from sqlglot import exp

Value = str | bytes | Decimal
"""A value that a person gives: quoted text, hexadecimal bytes, or a number."""

_MOST_DIGITS: Final = 38
_TIME: Final = re.compile(r"(-?)(\d{1,3}):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,6}))?)?")
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?")
_EXACT: Final = Context(prec=200)


class MismatchError(UsageError):
    """A value does not fit the type of its column."""


def image_value(image: str, column: Column) -> "exp.Expr":
    """Return the text of a column in a row image (`row_before` or `row_after`); NULL if the image lacks it."""
    from sqlglot import exp

    return exp.Bracket(this=exp.column(image), expressions=[exp.Literal.string(column.name)])


def is_in_image(image: str, column: Column) -> "exp.Expr":
    """Return the condition that a row image contains a column: a partial image contains only some."""
    from sqlglot import exp

    names = exp.MapKeys(this=exp.column(image))
    return exp.ArrayContains(this=names, expression=exp.Literal.string(column.name))


def compare(operator: type["exp.Binary"], text: "exp.Expr", column: Column, value: Value) -> "exp.Expr":
    """Return the comparison of a column's text with a value.

    Raises
    ------
    MismatchError
        The value does not fit the type of the column.
    """
    from sqlglot import exp

    match column.kind:
        case Kind.NUMBER | Kind.YEAR:
            return _compare_number(operator, text, column, number_of(value, column))
        case Kind.FLOAT | Kind.DOUBLE:
            number = exp.Literal.string(str(number_of(value, column)))
            # A FLOAT is compared as the 32 bits that its digits mean, as a person reads them.
            return operator(this=measured(text, column), expression=_cast(number, _float_type(column)))
        case Kind.MOMENT:
            known = exp.Literal.string(_full_moment(_text(value), column))
            return operator(this=measured(text, column), expression=known)
        case Kind.TIME:
            return operator(
                this=measured(text, column), expression=exp.Literal.number(_microseconds(_text(value), column))
            )
        case Kind.ADDRESS if operator not in (exp.EQ, exp.NEQ):
            raise _without_order(column)
        case _:
            if operator in (exp.EQ, exp.NEQ):
                _assert_label(_text(value), column)
            return operator(this=text, expression=exp.Literal.string(canonical(value, column) or ""))


def rank(value: str, column: Column) -> Decimal | float | int | str:
    """Return a value of a column so that two of them are in the order of `compare`.

    Raises
    ------
    MismatchError
        The value does not fit the type of the column.
    """
    match column.kind:
        case Kind.NUMBER | Kind.YEAR:
            return number_of(value, column)
        case Kind.FLOAT:
            number = float(number_of(value, column))
            try:
                return float(struct.unpack("<f", struct.pack("<f", number))[0])
            except OverflowError:
                return number
        case Kind.DOUBLE:
            return float(number_of(value, column))
        case Kind.MOMENT:
            return _full_moment(value, column)
        case Kind.TIME:
            return _microseconds(value, column)
        case Kind.ADDRESS:
            raise _without_order(column)
        case _:
            return canonical(value, column) or ""


def is_one_of(name: str, texts: Sequence[str]) -> "exp.Expr":
    """Return the condition that a column of `row_changes` has one of some texts."""
    from sqlglot import exp

    if len(texts) == 1:
        return exp.EQ(this=exp.column(name), expression=exp.Literal.string(texts[0]))
    return exp.In(this=exp.column(name), expressions=[exp.Literal.string(text) for text in texts])


def compare_columns(
    operator: type["exp.Binary"],
    left: tuple["exp.Expr", Column],
    right: tuple["exp.Expr", Column],
) -> "exp.Expr":
    """Return the comparison of two columns.

    Raises
    ------
    MismatchError
        The types of the columns cannot be compared.
    """
    from sqlglot import exp

    (one, first), (two, second) = left, right
    numbers = {Kind.NUMBER, Kind.YEAR, Kind.FLOAT, Kind.DOUBLE}
    kinds = {first.kind, second.kind}
    if Kind.ADDRESS in kinds and operator not in (exp.EQ, exp.NEQ):
        raise _without_order(first if first.kind is Kind.ADDRESS else second)
    if kinds == {Kind.NUMBER}:
        scale = max(first.digits[1], second.digits[1])
        if max(each.digits[0] - each.digits[1] for each in (first, second)) + scale > _MOST_DIGITS:
            raise _too_wide(first if first.digits >= second.digits else second)
        return operator(this=_cast(one, f"decimal(38, {scale})"), expression=_cast(two, f"decimal(38, {scale})"))
    if len(kinds) > 1 and kinds <= numbers:
        return operator(this=_cast(one, "double"), expression=_cast(two, "double"))
    if len(kinds) > 1:
        raise MismatchError(
            f"{first.name} ({first.shown_type}) and {second.name} ({second.shown_type}) cannot be compared.",
            hint="Compare columns of similar types.",
        )
    return operator(this=measured(one, first), expression=measured(two, second))


def measured(text: "exp.Expr", column: Column) -> "exp.Expr":
    """Return a column's text in a form that compares like the value."""
    match column.kind:
        case Kind.NUMBER | Kind.YEAR:
            digits, scale = column.digits
            if digits > _MOST_DIGITS:
                raise _too_wide(column)
            return _cast(text, f"decimal(38, {scale})")
        case Kind.FLOAT | Kind.DOUBLE:
            return _cast(text, _float_type(column))
        case Kind.MOMENT:
            return _padded(text)
        case Kind.TIME:
            return _time_in_microseconds(text)
        case _:
            return text


def canonical(value: Value, column: Column) -> str | None:
    """Return the text that the log has for a value of a column; None if several texts may mean it.

    Raises
    ------
    MismatchError
        The value does not fit the type of the column.
    """
    match column.kind:
        case Kind.NUMBER:
            number = number_of(value, column)
            _, scale = column.digits
            exact = _floor(number, scale)
            return f"{exact:f}" if exact == number else None
        case Kind.YEAR:
            return f"{int(number_of(value, column)):04d}"
        case Kind.FLOAT | Kind.DOUBLE | Kind.TIME:
            return None
        case Kind.MOMENT:
            full = _full_moment(_text(value), column)
            return full[:10] if column.data_type in ("date", "newdate") else None
        case Kind.BINARY:
            text = _hexadecimal(value)
            return text + "00" * max(column.fixed_bytes - len(text) // 2 + 1, 0)
        case Kind.ADDRESS:
            return _address(_text(value), column)
        case _:
            return _text(value)


def number_of(value: Value, column: Column) -> Decimal:
    """Return a value of a numeric column.

    Raises
    ------
    MismatchError
        The value is not a number.
    """
    try:
        number = Decimal(value.strip() if isinstance(value, str) else _number_text(value))
    except InvalidOperation:
        number = Decimal("nan")
    is_exact = column.kind in (Kind.NUMBER, Kind.YEAR)
    if not number.is_finite() or (is_exact and abs(number.adjusted()) > _MOST_DIGITS * 3):
        raise MismatchError(
            f"{_text(value)!r} is not a number, and column {column.name} is {column.shown_type}.",
            hint=f"Give a number for {column.name}.",
        )
    # The servers take two digits for a year from 1970 to 2069.
    return number + (2000 if number < 70 else 1900) if column.kind is Kind.YEAR and 0 < number < 100 else number


def _number_text(value: bytes | Decimal) -> Decimal | str:
    return value if isinstance(value, Decimal) else "nan"


def _compare_number(operator: type["exp.Binary"], text: "exp.Expr", column: Column, number: Decimal) -> "exp.Expr":
    """Compare with a number that may have more digits than the column, or be beyond its range."""
    from sqlglot import exp

    scale = 0 if column.kind is Kind.YEAR else column.digits[1]
    below = _floor(number, scale)
    is_exact = below == number
    if operator in (exp.EQ, exp.NEQ):
        if is_exact:
            known = f"{int(number):04d}" if column.kind is Kind.YEAR else f"{below:f}"
            return operator(this=text, expression=exp.Literal.string(known))
        return never_equal(operator, text)
    if len(below.as_tuple().digits) > _MOST_DIGITS - 1:
        return _constant(text, (operator in (exp.LT, exp.LTE)) == (number > 0))
    if not is_exact:
        # Nothing lies between the next lower value of the column and the number.
        operator = exp.LTE if operator in (exp.LT, exp.LTE) else exp.GT
    return operator(
        this=measured(text, column), expression=_cast(exp.Literal.string(f"{below:f}"), f"decimal(38, {scale})")
    )


def never_equal(operator: type["exp.Binary"], text: "exp.Expr") -> "exp.Expr":
    """Return the result of `=` or `!=` with a value that the column cannot have."""
    from sqlglot import exp

    return _constant(text, operator is exp.NEQ)


def assert_quoted(typed: str, value: Value, column: Column) -> None:
    """Refuse a number without quotes for a column of texts, if it is not certain which text it means.

    Raises
    ------
    UsageError
        MySQL would compare the number of a label, or the text of the number is another one than was typed.
    """
    if column.kind is not Kind.TEXT:
        return
    finding = f"{typed} is a number without quotes, and column {column.name} is {column.shown_type}."
    if column.members:
        raise UsageError(finding, hint=f"Quote the label that you mean, such as '{column.members[0]}'.")
    if _text(value) != typed:
        raise UsageError(finding, hint=f"Quote the text that you mean: '{typed}'.")


def _constant(text: "exp.Expr", truth: bool) -> "exp.Expr":
    """Return a truth value, NULL for NULL."""
    from sqlglot import exp

    is_null = exp.Is(this=text, expression=exp.null())
    return exp.Case(ifs=[exp.If(this=exp.Not(this=is_null), true=exp.Boolean(this=truth))])


def _floor(number: Decimal, scale: int) -> Decimal:
    # Adding zero makes -0 a 0.
    return _EXACT.add(number.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_FLOOR, context=_EXACT), 0)


def _cast(text: "exp.Expr", type_name: str) -> "exp.Expr":
    from sqlglot import exp

    return exp.TryCast(this=text, to=exp.DataType.build(type_name, dialect="spark"))


def _float_type(column: Column) -> str:
    return "float" if column.kind is Kind.FLOAT else "double"


def _padded(text: "exp.Expr") -> "exp.Expr":
    """Return a date or time with all digits of its fraction, so that text compares like the time."""
    from sqlglot import exp

    def lasts(length: int, rest: str) -> "exp.If":
        is_long = exp.EQ(this=exp.Length(this=text.copy()), expression=exp.Literal.number(length))
        return exp.If(this=is_long, true=_joined(text, rest))

    padded = exp.Pad(
        this=text.copy(), expression=exp.Literal.number(26), fill_pattern=exp.Literal.string("0"), is_left=False
    )
    return exp.Case(ifs=[lasts(10, " 00:00:00.000000"), lasts(19, ".000000")], default=padded)


def _joined(text: "exp.Expr", rest: str) -> "exp.Expr":
    from sqlglot import exp

    return exp.Concat(expressions=[text.copy(), exp.Literal.string(rest)], safe=True, coalesce=False)


def _full_moment(text: str, column: Column) -> str:
    found = _MOMENT.fullmatch(text.strip())
    if found is None or not _is_calendar_time(found):
        raise MismatchError(
            f"{text!r} is not a date or time, and column {column.name} is {column.shown_type}.",
            hint="Give it as '2026-11-17' or '2026-11-17 09:30:00', in UTC for a TIMESTAMP.",
        )
    day, minutes, seconds, fraction = found.groups(default="")
    return f"{day} {minutes or '00:00'}:{seconds or '00'}.{fraction:0<6}"


def _is_calendar_time(found: re.Match[str]) -> bool:
    """Return whether a time exists; zeros as month or day are MySQL's zero dates."""
    text = found[0].replace("-00", "-01").replace("0000-", "0004-")
    try:
        datetime.fromisoformat(text)
    except ValueError:
        # ALLOW_INVALID_DATES stores 2026-02-31.
        return found[1][5:7] <= "12" and found[1][8:] <= "31" and (found[2] or "00") < "24"
    return True


def _microseconds(text: str, column: Column) -> int:
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise MismatchError(
            f"{text!r} is not a time of day or interval, and column {column.name} is {column.shown_type}.",
            hint="Give it as '09:30:00' or '-100:00:00.5'.",
        )
    sign, hours, minutes, seconds, fraction = found.groups(default="")
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds or 0)
    return (whole * 1_000_000 + int(f"{fraction:0<6}")) * (-1 if sign else 1)


def _time_in_microseconds(text: "exp.Expr") -> "exp.Expr":
    from sqlglot import exp

    bare = exp.Replace(this=text.copy(), expression=exp.Literal.string("-"), replacement=exp.Literal.string(""))

    def part(number: int) -> "exp.Expr":
        taken = exp.SplitPart(
            this=bare.copy(), delimiter=exp.Literal.string(":"), part_index=exp.Literal.number(number)
        )
        return _cast(taken, "decimal(20, 6)")

    whole = exp.Literal.number
    minutes = exp.Add(this=exp.Paren(this=exp.Mul(this=part(1), expression=whole(60))), expression=part(2))
    seconds = exp.Add(
        this=exp.Paren(this=exp.Mul(this=exp.Paren(this=minutes), expression=whole(60))), expression=part(3)
    )
    size = exp.Mul(this=exp.Paren(this=seconds), expression=whole(1_000_000))
    is_negative = exp.StartsWith(this=text.copy(), expression=exp.Literal.string("-"))
    return exp.Case(ifs=[exp.If(this=is_negative, true=exp.Neg(this=exp.Paren(this=size.copy())))], default=size)


def _assert_label(text: str, column: Column) -> None:
    """Refuse a label that an ENUM does not have."""
    from recover.selection.catalog import unknown_name

    if column.labels and text and text not in column.labels and not text.isdigit():
        raise unknown_name(f"Column {column.name} has no label {text!r}.", text, column.labels)


def _text(value: Value) -> str:
    if isinstance(value, bytes):
        return f"0x{value.hex().upper()}"
    return value if isinstance(value, str) else f"{value:f}"


def _hexadecimal(value: Value) -> str:
    """Return bytes as the log shows them; text is taken as UTF-8, unless it is already hexadecimal."""
    if isinstance(value, str) and re.fullmatch(r"0x([0-9A-Fa-f]{2})*", value):
        return f"0x{value[2:].upper()}"
    data = value if isinstance(value, bytes) else _text(value).encode()
    return f"0x{data.hex().upper()}"


def _address(text: str, column: Column) -> str:
    """Return an address or a UUID as MariaDB shows it.

    Source: MariaDB, plugin/type_inet/sql_type_inet.cc, `Inet6::to_string`, which has the form of the C library.
    """
    try:
        if column.data_type == "uuid":
            return str(uuid.UUID(text))
        if column.data_type == "inet4":
            return socket.inet_ntoa(bytes(int(part) for part in text.strip().split(".")))
        return socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, text.strip()))
    except (ValueError, OSError):
        raise MismatchError(
            f"{text!r} is no value of column {column.name}, which is {column.shown_type}.",
            hint="Give it as the server shows it.",
        ) from None


def _without_order(column: Column) -> MismatchError:
    return MismatchError(
        f"Column {column.name} ({column.shown_type}) has no order here.", hint="Compare it with = or !=, or use IN."
    )


def _too_wide(column: Column) -> MismatchError:
    return MismatchError(
        f"Column {column.name} ({column.shown_type}) has more than {_MOST_DIGITS} digits; it has no order here.",
        hint="Compare it with = or !=.",
    )
