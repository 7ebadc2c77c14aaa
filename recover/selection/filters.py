"""The filters that select row changes, the same for every command: as a person gives them, checked without the log.

`recover.selection.condition` makes a condition of them, for which it needs the tables of the log.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from ingest.errors import UsageError
from recover.selection.gtids import GtidRange, gtid_ranges


class By(StrEnum):
    """Unit of the rows of an answer about selected changes."""

    CHANGE = "change"
    TRANSACTION = "transaction"
    TABLE = "table"
    HOUR = "hour"
    THREAD = "thread"
    APP = "app"
    ROUTE = "route"
    DIGEST = "digest"


TYPES: Final = ("INSERT", "UPDATE", "DELETE")
_DIGEST: Final = re.compile("[0-9a-f]{8,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Filters of row changes. A change is selected if it fits one value of each filter that has values.

    Attributes
    ----------
    sources
        Names of sources.
    schemas
        Patterns of schemas, with `*` and `?`.
    tables
        Patterns of tables: `schema.table`, or `table` in any schema.
    keys
        Primary keys: as in `pk_values`, or `column=value`, several of them joined by `|`.
    key_from, key_to
        First and last primary key of a range, both included. They may have fewer columns than the key.
    types
        INSERT, UPDATE, DELETE.
    since, until
        Times of the changes in the log, in UTC: the first is included, the last is not.
    gtids
        Ranges of GTIDs.
    transactions
        Transactions: `transaction_id`, a GTID, or `file:position` of the transaction's start.
    change_ids
        Single row changes, by `change_id`.
    threads
        Connections that wrote the changes.
    files
        Names of binlog files.
    from_pos, to_pos
        Positions in the one file: the first is included, the last is not.
    changed
        Names of columns; each of them was changed by an UPDATE.
    where
        Conditions in MySQL's syntax on the values of a row: see `recover.selection.where`.
    statement
        Text that the statement contains, in any case.
    digests
        Digests of the statement, or their first digits.
    tags
        Keys and values of tags of the statement. A change has one value of each key.
    """

    sources: tuple[str, ...] = ()
    schemas: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    key_from: str | None = None
    key_to: str | None = None
    types: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    gtids: tuple[GtidRange, ...] = ()
    transactions: tuple[str, ...] = ()
    change_ids: tuple[str, ...] = ()
    threads: tuple[int, ...] = ()
    files: tuple[str, ...] = ()
    from_pos: int | None = None
    to_pos: int | None = None
    changed: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    statement: str | None = field(default=None)
    digests: tuple[str, ...] = ()
    tags: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if unknown := [one for one in self.types if one not in TYPES]:
            raise UsageError(
                f"{unknown[0]!r} is not a type of a row change.", hint=f"The types are {', '.join(TYPES)}."
            )
        if (self.from_pos is not None or self.to_pos is not None) and len(self.files) != 1:
            raise UsageError(
                "A position is an offset in one binlog file.",
                hint="Give --file NAME with --from-pos and --to-pos, or only that file with --files.",
            )
        if self.from_pos is not None and self.to_pos is not None and self.from_pos >= self.to_pos:
            raise UsageError(
                f"--from-pos {self.from_pos} is not before --to-pos {self.to_pos}.",
                hint="Events from the first position on and before the second are selected.",
            )
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise UsageError(
                f"--since {self.since:%F %T} is not before --until {self.until:%F %T}.",
                hint="Changes from the first time on and before the second are selected.",
            )
        if (self.keys or self.key_from or self.key_to) and not self.tables:
            raise UsageError("A key belongs to a table.", hint="Give --table with --key, --key-from or --key-to.")

    @property
    def is_selective(self) -> bool:
        """Return whether they select transactions or rows, and not only the sources that these are of."""
        return replace(self, sources=()) != Filters()

    @property
    def is_without_values(self) -> bool:
        """Return whether rows in quarantine answer them, too: of those, neither values nor connections are known."""
        others = replace(self, keys=(), key_from=None, key_to=None, changed=(), where=(), threads=())
        return not self.has_statements and self == others

    @property
    def has_statements(self) -> bool:
        """Return whether they select by the statements of the changes."""
        return bool(self.statement is not None or self.digests or self.tags)

    @property
    def first_hour(self) -> str | None:
        """Return the hour of the first change that may be selected, as in `event_hour`; None: no limit."""
        return None if self.since is None else f"{self.since:%Y-%m-%d-%H}"

    @property
    def last_hour(self) -> str | None:
        """Return the hour of the last change that may be selected, as in `event_hour`; None: no limit."""
        return None if self.until is None else f"{self.until - timedelta(microseconds=1):%Y-%m-%d-%H}"

    def may_select_from(self, column: str, value: str) -> bool:
        """Return whether changes may be selected of a partition of `row_changes`, given a column and its value."""
        match column:
            case "event_hour":
                is_late_enough = self.first_hour is None or self.first_hour <= value
                return is_late_enough and (self.last_hour is None or value <= self.last_hour)
            case "source_id":
                return not self.sources or value in self.sources
            case "binlog_file":
                return not self.files or value in self.files
        return True

    @classmethod
    def of(
        cls,
        *,
        sources: Iterable[str] = (),
        schemas: Iterable[str] = (),
        tables: Iterable[str] = (),
        keys: Iterable[str] = (),
        key_from: str | None = None,
        key_to: str | None = None,
        types: Iterable[str] = (),
        since: str | None = None,
        until: str | None = None,
        gtids: Iterable[str] = (),
        transactions: Iterable[str] = (),
        change_ids: Iterable[str] = (),
        threads: Iterable[int] = (),
        files: Iterable[str] = (),
        from_pos: int | None = None,
        to_pos: int | None = None,
        changed: Iterable[str] = (),
        where: Iterable[str] = (),
        statement: str | None = None,
        digests: Iterable[str] = (),
        tags: Iterable[str] = (),
    ) -> "Filters":
        """Return filters from the texts that a person typed.

        Raises
        ------
        UsageError
            A text is not what its filter needs, or two filters contradict each other.
        """
        return cls(
            sources=tuple(sources),
            schemas=separated(schemas),
            tables=separated(tables),
            keys=tuple(keys),
            key_from=key_from,
            key_to=key_to,
            types=tuple(one.upper() for one in separated(types)),
            since=None if since is None else moment(since, "--since"),
            until=None if until is None else moment(until, "--until"),
            gtids=tuple(found for text in gtids for found in gtid_ranges(text)),
            transactions=tuple(transactions),
            change_ids=tuple(change_ids),
            threads=tuple(threads),
            files=separated(files),
            from_pos=from_pos,
            to_pos=to_pos,
            changed=separated(changed),
            where=tuple(where),
            statement=statement,
            digests=tuple(_digest(text) for text in digests),
            tags=tuple(_tag(text) for text in tags),
        )


def in_words(filters: Filters) -> str:
    """Return the filters that are set, as the options that set them; empty if there are none."""
    texts = []
    for one in fields(filters):
        value = getattr(filters, one.name)
        if value not in (None, ()):
            texts.append(f"{one.name.replace('_', ' ')} {', '.join(texts_of(value))}")
    return "; ".join(texts)


def texts_of(value: Any) -> list[str]:
    """Return the texts that give the value of a filter, one for each of its values."""
    values = value if isinstance(value, tuple) else (value,)
    return ["=".join(one) if isinstance(one, tuple) else str(one) for one in values]


def separated(texts: Iterable[str]) -> tuple[str, ...]:
    """Return names that were given one by one or separated by commas.

    Raises
    ------
    UsageError
        A text has no name. As a filter it would select everything.
    """
    return tuple(name for text in texts for name in _names(text))


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError(f"{text!r} contains no name.", hint="Give one name, or several separated by commas.")
    return names


def _digest(text: str) -> str:
    found = text.strip().lower()
    if not _DIGEST.fullmatch(found):
        raise UsageError(
            f"{text!r} is not a digest.",
            hint="A digest has 64 hexadecimal digits, of which the first 8 are enough; binloom query --by digest"
            " prints them.",
        )
    return found


def _tag(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not key.strip() or not sign:
        raise UsageError(f"{text!r} is not a tag.", hint="Give KEY=VALUE, such as application=shop.")
    return key.strip(), value


def moment(text: str, option: str) -> datetime:
    """Return a time in UTC; without an offset the text is in UTC.

    Raises
    ------
    UsageError
        The text is not a time.
    """
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(
            f"{option} {text!r} is not a time.", hint="Give a time such as '2026-11-17 09:30' or 2026-11-17T09:30:00Z."
        ) from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def key_parts(text: str) -> Sequence[str]:
    r"""Return the values of a key that is written as in `pk_values`: joined by `|`, with `\|` and `\\` as escapes."""
    parts, escaped = [""], False
    for sign in text:
        if escaped or sign not in "\\|":
            # A backslash that escapes nothing is an ordinary character.
            parts[-1] += sign if not escaped or sign in "\\|" else f"\\{sign}"
            escaped = False
        elif sign == "|":
            parts.append("")
        else:
            escaped = True
    if escaped:
        parts[-1] += "\\"
    return parts


def key_text(parts: Iterable[str]) -> str:
    """Return the values of a key as `pk_values` has them."""
    return "|".join(part.replace("\\", "\\\\").replace("|", "\\|") for part in parts)
