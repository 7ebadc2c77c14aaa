"""GTIDs as people name them: one, a range, or a set, of MySQL and MariaDB."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ingest.errors import UsageError

if TYPE_CHECKING:
    from sqlglot import exp

_MYSQL: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MARIADB: Final = re.compile(r"(\d+-\d+-)(\d+)(?:\s+to\s+(?:\1)?(\d+))?")
_NUMBERS: Final = re.compile(r"(\d+)(?:-(\d+))?")
_TAG: Final = re.compile(r"[a-z_][a-z0-9_]{0,31}")
# So few GTIDs are named one by one; an engine compares texts faster than parts of them.
_FEW: Final = 100


@dataclass(frozen=True, slots=True)
class GtidRange:
    """Consecutive GTIDs.

    Attributes
    ----------
    stem
        The text before the number, with the separator: `uuid:`, `uuid:tag:` or `domain-server-`.
    first, last
        The numbers, both included.
    """

    stem: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.stem}{self.first}" + ("" if self.first == self.last else f" to {self.stem}{self.last}")


def gtid_ranges(text: str) -> tuple[GtidRange, ...]:
    """Return the ranges of a GTID or of a set of GTIDs.

    Unlike in a server's position, MariaDB's `0-1-9` is one transaction; `0-1-5 to 0-1-9` is a range.

    Raises
    ------
    UsageError
        The text is not a set of GTIDs.
    """
    found: list[GtidRange] = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        if maria := _MARIADB.fullmatch(item):
            found.append(_range(item, maria[1], maria[2], maria[3]))
            continue
        source, *parts = re.sub(r"\s+", "", item).lower().split(":")
        stem, has_numbers = f"{source}:", False
        for part in parts:
            if numbers := _NUMBERS.fullmatch(part):
                found.append(_range(item, stem, numbers[1], numbers[2]))
                has_numbers = True
            elif _TAG.fullmatch(part):
                stem = f"{source}:{part}:"
            else:
                raise _no_gtid(item)
        if not has_numbers or not _MYSQL.fullmatch(source):
            raise _no_gtid(item)
    if not found:
        raise _no_gtid(text)
    return tuple(found)


def is_gtid(text: str) -> bool:
    """Return whether a text is one GTID or several."""
    try:
        return bool(gtid_ranges(text))
    except UsageError:
        return False


def is_in(ranges: tuple[GtidRange, ...], gtid: "exp.Expr") -> "exp.Expr":
    """Return the condition that a GTID is in one of the ranges."""
    from sqlglot import exp

    names = [f"{one.stem}{number}" for one in ranges if _size(one) <= _FEW for number in range(one.first, one.last + 1)]
    conditions: list[exp.Expr] = []
    if names:
        conditions.append(exp.In(this=gtid.copy(), expressions=[exp.Literal.string(name) for name in names]))
    for one in ranges:
        if _size(one) > _FEW:
            rest = exp.Substring(this=gtid.copy(), start=exp.Literal.number(len(one.stem) + 1))
            number = exp.TryCast(this=rest, to=exp.DataType.build("bigint"))
            low, high = exp.Literal.number(one.first), exp.Literal.number(one.last)
            starts = exp.StartsWith(this=gtid.copy(), expression=exp.Literal.string(one.stem))
            conditions.append(exp.and_(starts, exp.Between(this=number, low=low, high=high)))
    return exp.or_(*conditions)


def _range(item: str, stem: str, first: str, last: str | None) -> GtidRange:
    found = GtidRange(stem, int(first), int(last or first))
    if not 0 < found.first <= found.last < 1 << 63:
        raise _no_gtid(item)
    return found


def _size(one: GtidRange) -> int:
    return one.last - one.first + 1


def _no_gtid(item: str) -> UsageError:
    return UsageError(
        f"{item!r} is neither a GTID nor a set of GTIDs.",
        hint="MySQL writes uuid:5 and uuid:1-5:7, MariaDB 0-1-5 and '0-1-5 to 0-1-9'; separate several by commas.",
    )
