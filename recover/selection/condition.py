"""The condition on `row_changes` that filters mean, for the tables of the log.

It is one expression of sqlglot, which DuckDB and Spark answer alike. Parts of it compare whole columns with constants,
so that an engine skips partitions, files and row groups that no selected change can be in.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ingest.binlog.filters import matches
from ingest.ddl.digests.comment_tags import APPLICATION_TAGS
from ingest.errors import UsageError
from recover.selection.catalog import TableVersion, unknown_name, unknown_source, unknown_table
from recover.selection.comparison import is_one_of
from recover.selection.filters import Filters
from recover.selection.gtids import gtid_ranges, is_gtid, is_in
from recover.selection.keys import of_key_range, of_keys
from recover.selection.where import Condition, columns_of

if TYPE_CHECKING:
    from sqlglot import exp

COMMIT_ORDER: Final = ("source_id", "epoch", "file_sequence", "start_pos", "payload_ordinal", "row_ordinal")
"""Columns of `row_changes` that sort it in the order of the log, one source after another."""

STATEMENT_KINDS: Final = ("ROWS_QUERY", "ANNOTATE")


@dataclass(frozen=True)
class Selection:
    """The row changes that filters select.

    Attributes
    ----------
    filters
        The filters.
    versions
        Versions of the tables that the filters allow.
    condition
        Condition on the columns of `row_changes`.
    alternatives
        Two conditions: the old key is selected, or only the new key is. Each change fits exactly one of these
        conditions. Together they equal the whole condition. They are separate because an engine uses the bloom filter
        of the old key only in a scan without the new key. Empty if the condition is not divided.
    keys
        The selected keys, as `pk_values` has them; empty if not exactly these are selected.
    sources
        Rows among which the changes of each alternative are; empty: all of `row_changes`.
    notes
        Sentences on comparisons that have another meaning for some rows than a person may expect.
    """

    filters: Filters
    versions: tuple[TableVersion, ...]
    condition: "exp.Expr"
    alternatives: "tuple[exp.Expr, ...]" = ()
    keys: tuple[str, ...] = ()
    sources: "tuple[exp.Expr, ...]" = ()
    notes: tuple[str, ...] = ()

    @property
    def tables(self) -> tuple[str, ...]:
        """Return the names of the tables that the filters allow."""
        return tuple(sorted({version.name for version in self.versions}))

    def query(self, *columns: "str | exp.Expr") -> "exp.Select":
        """Return a query of columns of the selected changes; without columns, of all."""
        from sqlglot import exp

        query = exp.select(*(columns or ("*",)))
        if not self.alternatives:
            return query.from_("binloom.row_changes").where(self.condition)
        sources = self.sources or [exp.table_("row_changes", db="binloom")] * len(self.alternatives)
        scans = [
            exp.select("*").from_(source.copy()).where(one)
            for source, one in zip(sources, self.alternatives, strict=True)
        ]
        return query.from_(exp.union(*scans, distinct=False).subquery("row_changes"))

    def sql(self, *columns: "str | exp.Expr") -> str:
        """Return the same query in DuckDB's dialect."""
        return self.query(*columns).sql("duckdb")

    def among_selected(self, text: str) -> "exp.Select":
        """Return a query in Spark's SQL in which the table `selected` has the selected changes."""
        import sqlglot
        from sqlglot import exp

        return sqlglot.parse_one(text, read="spark", into=exp.Select).with_("selected", as_=self.query())


def select(filters: Filters, versions: Sequence[TableVersion]) -> Selection:
    """Return what filters select.

    Parameters
    ----------
    filters
        The filters.
    versions
        Versions of all tables: `recover.selection.catalog.read_table_versions`.

    Raises
    ------
    UsageError
        A source, table, column or label is unknown, or a value does not fit the type of its column.
    """
    from sqlglot import exp

    allowed = _allowed(filters, versions)
    conditions = [place_condition(filters), *_of_table(filters, allowed)]
    if filters.threads:
        numbers = [exp.Literal.number(thread) for thread in filters.threads]
        conditions.append(exp.In(this=exp.column("thread_id"), expressions=numbers))
    old_or_new, keys = of_keys(filters.keys, allowed) if filters.keys else (None, ())
    if filters.key_from is not None or filters.key_to is not None:
        conditions.append(of_key_range(filters.key_from, filters.key_to, allowed))
    conditions += [_changes(name, allowed) for name in filters.changed]
    fulfilled = [Condition.parse(text).bound(allowed) for text in filters.where]
    conditions += [condition for condition, _ in fulfilled]
    notes = tuple(note for _, told in fulfilled for note in told)
    if filters.has_statements:
        conditions.append(_of_statement(filters))
    if old_or_new is None:
        return Selection(filters, tuple(allowed), exp.and_(*conditions), notes=notes)
    alternatives: tuple[exp.Expr, ...] = ()
    if isinstance(old_or_new, exp.Or) and not filters.has_statements:
        is_other = exp.not_(exp.Coalesce(this=exp.paren(old_or_new.left.copy()), expressions=[exp.false()]))
        alternatives = (
            exp.and_(*conditions, old_or_new.left.copy()),
            exp.and_(*conditions, old_or_new.right.copy(), is_other),
        )
    whole = exp.and_(*conditions, old_or_new)
    return Selection(filters, tuple(allowed), whole, alternatives, keys=keys if alternatives else (), notes=notes)


def place_condition(filters: Filters) -> "exp.Expr":
    """Return the part of the condition that `quarantined_row_events` can answer too: place, time, transaction, type."""
    from sqlglot import exp

    conditions = list(_of_place(filters))
    if filters.gtids:
        conditions.append(is_in(filters.gtids, exp.column("gtid")))
    if filters.transactions:
        conditions.append(exp.or_(*(_transaction(text) for text in filters.transactions)))
    if filters.change_ids:
        conditions.append(exp.or_(*(_change(text) for text in filters.change_ids)))
    if filters.types:
        conditions.append(is_one_of("event_type", filters.types))
    return exp.and_(*conditions) if conditions else exp.true()


def statement_condition(filters: Filters) -> "exp.Expr":
    """Return the condition of place and time for statements, which have no partitions of hours."""
    from sqlglot import exp

    conditions = [*_of_position(filters), *_of_time(filters)]
    return exp.and_(*conditions) if conditions else exp.true()


def is_filtered_table(filters: Filters, schema: str, table: str) -> bool:
    """Return whether the filters of schemas and tables allow a table."""
    return (not filters.schemas or _matches(schema, filters.schemas)) and (
        not filters.tables or any(_is_named(schema, table, pattern) for pattern in filters.tables)
    )


# --- place and time ---


def _of_place(filters: Filters) -> Iterator["exp.Expr"]:
    from sqlglot import exp

    yield from _of_position(filters)
    # The partition repeats the condition on the time, for engines that prune only by the partition's own column.
    if filters.since is not None:
        yield exp.GTE(this=exp.column("event_hour"), expression=exp.Literal.string(filters.first_hour))
    if filters.until is not None:
        yield exp.LTE(this=exp.column("event_hour"), expression=exp.Literal.string(filters.last_hour))
    yield from _of_time(filters)


def _of_position(filters: Filters) -> Iterator["exp.Expr"]:
    from sqlglot import exp

    if filters.sources:
        yield is_one_of("source_id", filters.sources)
    if filters.files:
        yield is_one_of("binlog_file", filters.files)
    if filters.from_pos is not None:
        yield exp.GTE(this=exp.column("start_pos"), expression=exp.Literal.number(filters.from_pos))
    if filters.to_pos is not None:
        yield exp.LT(this=exp.column("start_pos"), expression=exp.Literal.number(filters.to_pos))


def _of_time(filters: Filters) -> Iterator["exp.Expr"]:
    from sqlglot import exp

    for moment, compared in ((filters.since, exp.GTE), (filters.until, exp.LT)):
        if moment is not None:
            at = exp.cast(exp.Literal.string(f"{moment:%Y-%m-%d %H:%M:%S.%f+00:00}"), "timestamptz")
            yield compared(this=exp.column("event_timestamp"), expression=at)


def _transaction(text: str) -> "exp.Expr":
    """Return the condition for a transaction: a GTID, `source/epoch/file/position`, or `file:position`."""
    from sqlglot import exp

    if is_gtid(text):
        return is_in(gtid_ranges(text), exp.column("gtid"))
    names: dict[str, exp.Expr] = {}
    if text.count("/") >= 3:
        source, epoch, file, position = text.rsplit("/", 3)
        names |= {"source_id": exp.Literal.string(source), "epoch": exp.Literal.number(epoch)}
    else:
        file, _, position = text.rpartition(":")
        epoch = "0"
    if not (file and position.isdigit() and epoch.isdigit()):
        raise UsageError(
            f"{text!r} does not name a transaction.",
            hint="Give a GTID, file:position of its start, or source/epoch/file/position as in transaction_id.",
        )
    names |= {"binlog_file": exp.Literal.string(file), "transaction_pos": exp.Literal.number(position)}
    return exp.and_(*(exp.EQ(this=exp.column(name), expression=value) for name, value in names.items()))


def _change(text: str) -> "exp.Expr":
    """Return the condition for one row change: `source/epoch/file/position/payload_ordinal/row_ordinal`."""
    from sqlglot import exp

    source, *places = text.rsplit("/", 5)
    numbers = dict(zip(("epoch", "start_pos", "payload_ordinal", "row_ordinal"), places[:1] + places[2:], strict=False))
    if len(places) != 5 or not source or not places[1] or not all(one.isdecimal() for one in numbers.values()):
        raise UsageError(
            f"{text!r} does not name a row change.",
            hint="Give a change_id as `binloom query --format json` prints it:"
            " source/epoch/file/position/payload_ordinal/row_ordinal.",
        )
    texts = {"source_id": source, "binlog_file": places[1]}
    return exp.and_(
        *(is_one_of(name, [value]) for name, value in texts.items()),
        *(exp.EQ(this=exp.column(name), expression=exp.Literal.number(value)) for name, value in numbers.items()),
    )


# --- tables and columns ---


def _allowed(filters: Filters, versions: Sequence[TableVersion]) -> list[TableVersion]:
    """Return the versions that the filters of sources, schemas and tables allow; each of them must name something."""
    known = {version.source_id for version in versions}
    for source in filters.sources:
        if source not in known:
            raise unknown_source(source, known)
    allowed = [one for one in versions if not filters.sources or one.source_id in filters.sources]
    for pattern in filters.schemas:
        if not any(matches(version.schema_name, pattern) for version in allowed):
            raise unknown_name(f"There is no schema {pattern!r}.", pattern, (one.schema_name for one in allowed))
    allowed = [one for one in allowed if not filters.schemas or _matches(one.schema_name, filters.schemas)]
    for pattern in filters.tables:
        if not any(_is_table(version, pattern) for version in allowed):
            raise unknown_table(pattern, ((one.schema_name, one.table_name) for one in allowed))
    return [one for one in allowed if not filters.tables or any(_is_table(one, each) for each in filters.tables)]


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(matches(name, pattern) for pattern in patterns)


def _is_table(version: TableVersion, pattern: str) -> bool:
    return _is_named(version.schema_name, version.table_name, pattern)


def _is_named(schema: str, table: str, pattern: str) -> bool:
    return matches(f"{schema}.{table}" if "." in pattern else table, pattern)


def _of_table(filters: Filters, allowed: Sequence[TableVersion]) -> Iterator["exp.Expr"]:
    from sqlglot import exp

    if not (filters.schemas or filters.tables):
        return
    by_schema: dict[str, set[str]] = {}
    for version in allowed:
        by_schema.setdefault(version.schema_name, set()).add(version.table_name)
    # Beside the exact condition, because an engine prunes by a column alone.
    yield is_one_of("schema_name", sorted(by_schema))
    if filters.tables:
        yield is_one_of("table_name", sorted({name for names in by_schema.values() for name in names}))
    if filters.tables and len(by_schema) > 1:
        yield exp.or_(
            *(
                exp.and_(is_one_of("schema_name", [schema]), is_one_of("table_name", sorted(names)))
                for schema, names in sorted(by_schema.items())
            )
        )


def _changes(name: str, allowed: Sequence[TableVersion]) -> "exp.Expr":
    """Return the condition that an UPDATE changed a column, in any spelling of its name."""
    from sqlglot import exp

    spellings = columns_of(name, allowed)
    return exp.or_(
        *(
            exp.ArrayContains(this=exp.column("changed_columns"), expression=exp.Literal.string(spelling))
            for spelling in spellings
        )
    )


# --- statements ---


def _of_statement(filters: Filters) -> "exp.Expr":
    """Return the condition that the statement of a change has a text, a digest and tags.

    A statement is logged before its row events, and counts for all rows of its transaction up to the next statement.
    """
    import sqlglot
    from sqlglot import exp

    kinds = ", ".join(f"'{kind}'" for kind in STATEMENT_KINDS)
    found = sqlglot.parse_one(
        f"""exists (
            select 1 from (
                select *,
                    lead(start_pos) over same_transaction as next_pos,
                    lead(payload_ordinal) over same_transaction as next_ordinal
                from binloom_staging.stg_binlog__statements
                where kind in ({kinds})
                window same_transaction as (
                    partition by source_id, epoch, binlog_file, transaction_pos order by start_pos, payload_ordinal
                )
            ) as statement
            where
                statement.source_id = row_changes.source_id
                and statement.epoch = row_changes.epoch
                and statement.binlog_file = row_changes.binlog_file
                and statement.transaction_pos = row_changes.transaction_pos
                and (
                    statement.start_pos < row_changes.start_pos
                    or (
                        statement.start_pos = row_changes.start_pos
                        and statement.payload_ordinal < row_changes.payload_ordinal
                    )
                )
                and (
                    statement.next_pos is null
                    or row_changes.start_pos < statement.next_pos
                    or (
                        row_changes.start_pos = statement.next_pos
                        and row_changes.payload_ordinal < statement.next_ordinal
                    )
                )
        )""",
        read="spark",
    )
    query = found.find(exp.Select)
    if query is None:
        raise TypeError(found)
    query.where(*_on_statement(filters), copy=False)
    return found


def _on_statement(filters: Filters) -> Iterator["exp.Expr"]:
    from sqlglot import exp

    def column(name: str) -> "exp.Column":
        return exp.column(name, table="statement")

    if filters.statement is not None:
        text = exp.Lower(this=exp.Literal.string(filters.statement))
        yield exp.Contains(this=exp.Lower(this=column("sql_text")), expression=text)
    if filters.digests:
        yield exp.or_(
            *(
                exp.StartsWith(this=column("digest"), expression=exp.Literal.string(digest))
                for digest in filters.digests
            )
        )
    for key in dict.fromkeys(key for key, _ in filters.tags):
        # Libraries name the application differently; --by app shows it under one name.
        names = APPLICATION_TAGS if key == APPLICATION_TAGS[0] else (key,)
        values = [exp.Bracket(this=column("tags"), expressions=[exp.Literal.string(name)]) for name in names]
        value = exp.Coalesce(this=values[0], expressions=values[1:])
        yield value.isin(*(exp.Literal.string(one) for name, one in filters.tags if name == key))
