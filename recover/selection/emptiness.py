"""The reason why filters select nothing. It is searched only when they do."""

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from ingest.ddl.secrets import without_secrets
from ingest.errors import UsageError
from ingest.words import counted
from recover.selection.catalog import unknown_name
from recover.selection.condition import STATEMENT_KINDS, Selection, place_condition, select
from recover.selection.filters import Filters, texts_of
from recover.selection.gtids import is_gtid, is_in

if TYPE_CHECKING:
    from sqlglot import exp

Ask = Callable[["exp.Query"], Iterable[tuple[Any, ...]]]
"""Gives the rows of a query on `binloom.row_changes` and `binloom.transactions`."""

# Options by the name of their filter.
_OPTIONS: Final = {
    "sources": "--source",
    "schemas": "--schema",
    "tables": "--table",
    "keys": "--key",
    "types": "--type",
    "gtids": "--gtid",
    "transactions": "--transaction",
    "change_ids": "--change-id",
    "threads": "--thread",
    "files": "--file",
    "digests": "--digest",
    "tags": "--tag",
}

# Characters of a set of GTIDs or of a statement in a message.
_LONGEST: Final = 300
# Transactions whose statements are searched, when none of them has a row.
_MANY: Final = 100
# Statements that a server logs at the edges of a transaction.
_ENDS: Final = ("BEGIN", "COMMIT", "ROLLBACK")


class NothingSelectedError(UsageError):
    """The filters select no row change."""


class OutsideTheLogError(NothingSelectedError):
    """A GTID, file, position or time is not in the log."""


def why_nothing(ask: Ask, selection: Selection, is_whole: bool = True, *, is_damaged: bool = False) -> UsageError:
    """Return the error for a selection without row changes: what is not there, and what is.

    Parameters
    ----------
    ask
        Asks the log.
    selection
        A selection that has no row changes.
    is_whole
        Whether the log has all row changes, and not only those that fit some filters.
    is_damaged
        Whether a part of the log could not be read.
    """
    filters = selection.filters
    return (
        _unknown_file(ask, filters)
        or _unknown_transaction(ask, filters)
        or _changes_no_row(ask, filters)
        or _outside_time(ask, filters)
        or _not_logged(ask, filters)
        or _only_filter(filters, is_damaged)
        or (_excluded(ask, selection) if is_whole else None)
        or NothingSelectedError(
            f"No row change fits all of these filters: {', '.join(_given(filters))}.",
            hint=f"Give fewer of them. {_case(filters)}".strip(),
        )
    )


def names_what_may_be_skipped(filters: Filters) -> bool:
    """Return whether the reason depends on transactions or statements that an index lets a reader skip."""
    return bool(filters.gtids or filters.transactions or filters.has_statements)


def _unknown_file(ask: Ask, filters: Filters) -> UsageError | None:
    from sqlglot import exp

    if not filters.files:
        return None
    known = {row[0] for row in ask(exp.select("binlog_file").distinct().from_("binloom.transactions"))}
    for name in filters.files:
        if name not in known:
            return unknown_name(f"The file {name!r} is not in the log.", name, known)
    return None


def _unknown_transaction(ask: Ask, filters: Filters) -> UsageError | None:
    from sqlglot import exp

    is_of_source = exp.column("source_id").isin(*filters.sources) if filters.sources else exp.true()
    log = " and ".join(filters.sources) or "the log"
    if filters.gtids and not _has_transactions(ask, exp.and_(is_of_source, is_in(filters.gtids, exp.column("gtid")))):
        shown = ", ".join(map(str, filters.gtids[:3]))
        return OutsideTheLogError(
            f"No transaction of {log} has a GTID of {shown}{' …' if len(filters.gtids) > 3 else ''}.",
            hint=_gtids_of_log(ask),
        )
    for text in filters.transactions:
        named = select(Filters(transactions=(text,)), ()).condition
        named = named.transform(_as_column_of_transactions)
        if not _has_transactions(ask, exp.and_(is_of_source, named)):
            hint = _gtids_of_log(ask) if is_gtid(text) else _transaction_around(ask, text, is_of_source)
            return OutsideTheLogError(f"There is no transaction {text!r} in {log}.", hint=hint)
    return None


def _changes_no_row(ask: Ask, filters: Filters) -> UsageError | None:
    """Name the statements of the transactions, if the filters name some and none of these has a row change."""
    from sqlglot import exp

    if not filters.gtids and not filters.transactions:
        return None
    named = select(Filters(sources=filters.sources, gtids=filters.gtids, transactions=filters.transactions), ())
    condition = named.condition.transform(_as_column_of_transactions)
    columns = ("source_id", "epoch", "binlog_file", "start_pos")
    found = list(ask(exp.select(*columns, "row_events").from_("binloom.transactions").where(condition).limit(_MANY)))
    if len(found) == _MANY or any(row_events != 0 for *_, row_events in found):
        return None
    own = (*columns[:3], "transaction_pos")
    is_of_them = exp.or_(
        *(
            exp.and_(*(exp.column(name).eq(value) for name, value in zip(own, place, strict=True)))
            for *place, _ in found
        )
    )
    query = exp.select("binlog_file", "start_pos", "sql_text", "count(*) over ()")
    query = query.from_("binloom_staging.stg_binlog__statements").where(
        exp.column("kind").eq("QUERY"), is_of_them, exp.Upper(this=exp.column("sql_text")).isin(*_ENDS).not_()
    )
    told = list(ask(query.order_by("epoch", "binlog_file", "start_pos").limit(1)))
    if not told:
        return None
    (file, position, text, statements), *_ = told
    first = _cut(" ".join(without_secrets(text).split()))
    one = len(found) == 1
    return NothingSelectedError(
        f"The transaction{'' if one else 's'} of this filter changed no row that the log lists: {first} (at"
        f" {file}:{position})" + (f" and {counted(statements - 1, 'more statement')}." if statements > 1 else "."),
        hint="`binloom state` prints the rows of a table before it, with --as-of and this position, as far as the log"
        " knows them; `binloom restore` takes the others from a dump.",
    )


def _as_column_of_transactions(node: "exp.Expr") -> "exp.Expr":
    from sqlglot import exp

    is_position = isinstance(node, exp.Column) and node.name == "transaction_pos"
    return exp.column("start_pos") if is_position else node


def _has_transactions(ask: Ask, condition: "exp.Expr") -> bool:
    from sqlglot import exp

    query = exp.select("1").from_("binloom.transactions").where(condition).limit(1)
    return bool(list(ask(query)))


def _gtids_of_log(ask: Ask) -> str:
    from sqlglot import exp

    from ingest.binlog.gtid_sets import GtidSet

    # One set for each source: GTIDs of MySQL and MariaDB do not fit into one.
    by_source: dict[str, GtidSet] = {}
    query = exp.select("source_id", "gtid").from_("binloom.transactions").where("gtid is not null")
    for source, gtid in ask(query.order_by("source_id")):
        by_source.setdefault(source, GtidSet()).add(gtid)
    texts = [f"{source} has {found}" for source, found in by_source.items()]
    shown = "; ".join(map(_cut, texts))
    return f"The log of {shown}." if shown else "The log has no GTIDs."


def _transaction_around(ask: Ask, text: str, is_of_source: "exp.Expr") -> str:
    from sqlglot import exp

    file, position = text.replace("/", ":").split(":")[-2:]
    is_around = exp.and_(
        is_of_source,
        exp.column("binlog_file").eq(exp.Literal.string(file)),
        f"start_pos < {int(position)}",
        f"end_pos > {int(position)}",
    )
    query = exp.select("transaction_id").from_("binloom.transactions").where(is_around)
    if rows := list(ask(query.order_by("transaction_id").limit(3))):
        return f"The position is inside a transaction. Give --transaction {' or '.join(row[0] for row in rows)}."
    return "A transaction is named by the position of its first event; binloom query --by transaction lists them."


def _outside_time(ask: Ask, filters: Filters) -> UsageError | None:
    from sqlglot import exp

    if filters.since is None and filters.until is None:
        return None
    query = exp.select("min(started_at)", "max(greatest(started_at, committed_at))").from_("binloom.transactions")
    query = query.where(place_condition(Filters(sources=filters.sources))).where("coalesce(row_events, 1) > 0")
    first, last = _row(ask, query)
    if first is None:
        return OutsideTheLogError("There are no row changes yet.", hint="Land a binlog, then run `binloom build`.")
    if (filters.since is None or filters.since <= last) and (filters.until is None or filters.until > first):
        return None
    asked = [f"from {_time(filters.since)} on"] if filters.since is not None else []
    asked += [f"before {_time(filters.until)}"] if filters.until is not None else []
    return OutsideTheLogError(
        f"There are no row changes {' and '.join(asked)}.",
        hint=f"The first transaction is at {_time(first)} and the last at {_time(last)}, in UTC.",
    )


def _not_logged(ask: Ask, filters: Filters) -> UsageError | None:
    """Name a filter that selects nothing whatever its value is: the log of the sources lacks what it compares."""
    from sqlglot import exp

    is_of_source = place_condition(Filters(sources=filters.sources))
    if filters.threads and not _has_transactions(
        ask, exp.and_(is_of_source, "thread_id is not null and coalesce(row_events, 1) > 0")
    ):
        return NothingSelectedError(
            "The log does not contain the thread of any row change, so none fits --thread.",
            hint="MariaDB before 11.5 does not log it for row changes.",
        )
    kinds = exp.column("kind").isin(*STATEMENT_KINDS)
    statements = exp.select("1").from_("binloom_staging.stg_binlog__statements").where(kinds, is_of_source).limit(1)
    if filters.has_statements and not list(ask(statements)):
        options = {"--statement": filters.statement, "--digest": filters.digests, "--tag": filters.tags}
        given = next(option for option, value in options.items() if value not in (None, ()))
        return NothingSelectedError(
            f"The log contains no statements of row changes, so none fits {given}.",
            hint="The server logs them with binlog_rows_query_log_events (MySQL) or binlog_annotate_row_events"
            " (MariaDB). `binloom top` lists the statements that dropped or emptied tables.",
        )
    return None


def _only_filter(filters: Filters, is_damaged: bool) -> UsageError | None:
    """Name the filter if there is only one; without any, the log has no row changes."""
    given = _given(filters)
    if not given:
        known = "What could be read of the log" if is_damaged else "The log"
        return NothingSelectedError(f"{known} contains no row changes.")
    if len(given) > 1:
        return None
    return NothingSelectedError(f"No row change fits this filter: {given[0]}.", hint=_case(filters) or None)


def _case(filters: Filters) -> str:
    """Return what a server does otherwise, if a condition has a text; most collations take no notice of case."""
    return "--where compares texts with their case." if any("'" in one or '"' in one for one in filters.where) else ""


def _given(filters: Filters) -> list[str]:
    """Return the filters as a person gives them."""
    values = {each.name: getattr(filters, each.name) for each in fields(Filters)}
    return [f"{_option(name)} {_shown(value)}" for name, value in values.items() if value not in (None, ())]


def _shown(value: Any) -> str:
    if isinstance(value, datetime):
        return _time(value)
    return _cut(", ".join(texts_of(value)))


def _cut(text: str) -> str:
    return text if len(text) < _LONGEST else f"{text[:_LONGEST]} …"


def _option(name: str) -> str:
    return _OPTIONS.get(name, f"--{name.replace('_', '-')}")


def _excluded(ask: Ask, selection: Selection) -> UsageError | None:
    """Name a filter without which there would be row changes."""
    filters = selection.filters
    for name in reversed([each.name for each in fields(Filters)]):
        value = getattr(filters, name)
        if value in (None, ()) or name in ("schemas", "tables", "files", "sources"):
            continue
        without: dict[str, Any] = {name: None if not isinstance(value, tuple) else ()}
        (count,) = _row(ask, select(replace(filters, **without), selection.versions).query("count(*)"))
        if count:
            case = _case(filters) if name == "where" else ""
            return NothingSelectedError(
                "No row change fits all filters.",
                hint=f"Without {_option(name)} there {'are' if count > 1 else 'is'} {count}. {case}".strip(),
            )
    return None


def _row(ask: Ask, query: "exp.Query") -> tuple[Any, ...]:
    return next(iter(ask(query)), (None, None))


def _time(moment: datetime | None) -> str:
    return str(moment.replace(tzinfo=None)) if moment is not None else ""
