"""Statements that define, alter or drop something."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from functools import partial
from typing import Any, Final

from binloom.answers import lacks
from binloom.answers.answer import Answer, Cells, known_fields
from ingest.binlog.filters import matches
from ingest.ddl.secrets import without_secrets
from recover.notes import Kind, Note
from recover.selection.condition import is_filtered_table, statement_condition
from recover.selection.filters import Filters
from recover.sources.log import Log
from recover.timeline.masked_columns import masked_tables

_ORDER: Final = ("source_id", "epoch", "file_sequence", "start_pos", "payload_ordinal")


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChange:
    """A statement that defines, alters or drops something, as the mart `schema_changes` has it.

    Attributes
    ----------
    tables
        All tables that it names, as `schema.table`.
    actions
        Its steps, such as `add_column note varchar(20)`.
    is_understood
        Whether binloom knows what each step does.
    destroys_rows
        Whether it removes rows without listing them in the log, such as DROP TABLE or TRUNCATE.
    transaction_pos
        Where its transaction begins.
    """

    source_id: str
    epoch: int
    binlog_file: str
    start_pos: int
    end_pos: int
    transaction_pos: int | None
    gtid: str | None
    thread_id: int | None
    event_timestamp: datetime | None
    statement_type: str
    schema_name: str | None
    table_name: str | None
    tables: list[str]
    actions: list[str]
    default_schema: str | None
    error_code: int | None
    sql_text: str | None
    is_understood: bool
    destroys_rows: bool

    @property
    def position(self) -> str:
        """Where its transaction begins, as `--transaction` takes it, and `--as-of` for what was there before."""
        return f"{self.binlog_file}:{self.start_pos if self.transaction_pos is None else self.transaction_pos}"

    @property
    def drops_columns(self) -> bool:
        """Whether it removes a column, and so its values in all rows."""
        return any(action.startswith("drop_column ") for action in self.actions)


COLUMNS: Final = tuple(one.name for one in fields(SchemaChange))


def schema_changes_of(log: Log, filters: Filters) -> Answer[SchemaChange]:
    """Return the statements that changed the schema, in the order of the log.

    Parameters
    ----------
    log
        It has the marts of `table_log`.
    filters
        Of these, sources, schemas, tables, files and times select. Of a table, the statements on its whole schema are
        selected, too.
    """
    notes = (
        *lacks.beginning(log, filters.sources, filters.since),
        *lacks.missing(log, filters),
        *_masked(log, filters),
        *lacks.damage(log),
    )
    return Answer(COLUMNS, notes, partial(_cells, log, filters), known_fields(SchemaChange))


def found_schema_changes(log: Log, filters: Filters) -> Iterator[SchemaChange]:
    """Yield the statements of `schema_changes_of`, without what is not known of them."""
    for cells in _cells(log, filters):
        yield SchemaChange(**dict(zip(COLUMNS, cells, strict=True)))


def _cells(log: Log, filters: Filters) -> Iterator[Cells]:
    from sqlglot import exp

    of_part = Filters(sources=filters.sources, files=filters.files, since=filters.since, until=filters.until)
    query = exp.select(*COLUMNS).from_("binloom.schema_changes").where(statement_condition(of_part)).order_by(*_ORDER)
    for cells in log.rows(query):
        change = dict(zip(COLUMNS, cells, strict=True))
        if _concerns(change, filters):
            # Answers are sent on: into files, to browsers, to agents.
            change["sql_text"] = without_secrets(change["sql_text"] or "") or None
            yield tuple(change.values())


def _concerns(change: Mapping[str, Any], filters: Filters) -> bool:
    """Return whether a statement names a table that filters select, or is about the whole schema of one."""
    schema, table = change["schema_name"] or "", change["table_name"] or ""
    named = [(schema, table), *map(_names, change["tables"] or ())]
    if any(is_filtered_table(filters, *name) for name in named):
        return True
    if table or change["tables"] or not is_filtered_table(Filters(schemas=filters.schemas), schema, ""):
        return False
    return any(matches(schema, _names(pattern)[0] or "*") for pattern in filters.tables)


def _names(table: str) -> tuple[str, str]:
    schema, _, name = table.rpartition(".")
    return schema, name


def _masked(log: Log, filters: Filters) -> Iterator[Note]:
    for source in sorted({one.source_id for one in log.versions}):
        if source in (filters.sources or (source,)) and masked_tables(log, source):
            yield Note(f"the source {source} has masks: texts of its statements are masked, too.", Kind.MASKED)
