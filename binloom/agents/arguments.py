"""The arguments of the tools. Names are those of the options of the commands; none names a file, a host or SQL."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from binloom.agents.told import LIMIT, MOST_ROWS
from recover.selection.filters import By

# An empty filter would select everything.
Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
Texts = Text | Annotated[list[Text], Field(min_length=1)] | None
Numbers = int | Annotated[list[int], Field(min_length=1)] | None
Keys = Text | int | Annotated[list[Text | int], Field(min_length=1)] | None

_MOMENT = "A time in UTC such as 2026-11-17T09:30:00, FILE:POSITION, or a GTID."


class Arguments(BaseModel):
    """Arguments of a tool. One that it does not know is refused: the answer would be to another question."""

    model_config = ConfigDict(extra="forbid")

    source: Text | None = Field(None, description="Name of the source, if several have landed.")


class Limited(Arguments):
    """Arguments of a tool that answers with rows."""

    limit: int = Field(LIMIT, ge=1, le=MOST_ROWS, description="The answer has at most this number of rows.")


class Filtering(BaseModel):
    """Filters of row changes; several values of one filter are alternatives, and all filters must fit."""

    schema_: Texts = Field(None, alias="schema", description="Schemas; patterns with * and ?.")
    table: Texts = Field(None, description="Tables as SCHEMA.TABLE; patterns with * and ?.")
    key: Keys = Field(None, description="Primary keys: VALUE, VALUE|VALUE for several columns, or COLUMN=VALUE.")
    key_from: Text | int | None = Field(None, description="First primary key of a range.")
    key_to: Text | int | None = Field(None, description="Last primary key of a range.")
    type: Texts = Field(None, description="INSERT, UPDATE, DELETE.")
    since: Text | None = Field(None, description="From this time on, in UTC.")
    until: Text | None = Field(None, description="Before this time, in UTC.")
    gtid: Texts = Field(None, description="GTIDs, or ranges of them.")
    transaction: Texts = Field(None, description="Transactions: transaction_id, a GTID, or FILE:POSITION.")
    change_id: Texts = Field(None, description="Single changes, by change_id.")
    thread: Numbers = Field(None, description="Ids of connections that wrote the changes.")
    file: Texts = Field(None, description="Names of binlog files in the log.")
    from_pos: int | None = Field(None, ge=0, description="From this position of the one file.")
    to_pos: int | None = Field(None, ge=0, description="Before this position of the one file.")
    changed: Texts = Field(None, description="Columns; each was changed by an UPDATE.")
    where: Texts = Field(
        None,
        description="Conditions on values, such as \"status = 'new' and after.total > 100\": only comparisons, of texts"
        " with their case.",
    )
    statement: Text | None = Field(None, description="Text that the logged statement contains.")

    digest: Texts = Field(None, description="Digests of the logged statement, or their first 8 digits.")
    tag: Texts = Field(None, description="Tags in a comment of the logged statement: KEY=VALUE.")

    @property
    def filters(self) -> dict[str, Any]:
        """The filters that were given, by the names of `binloom.api`."""
        return self.model_dump(by_alias=True, exclude_none=True, include={*Filtering.model_fields})


class Query(Limited, Filtering):
    """Arguments of `query`."""

    by: By = Field(By.CHANGE, description="Each change, or sums of changes.")


class Transactions(Limited, Filtering):
    """Arguments of `transactions`."""

    top: int = Field(10, ge=1, le=MOST_ROWS, description="So many with the most rows, and so many of the longest.")
    min_rows: int | None = Field(None, ge=0, description="All transactions with at least so many rows.")
    min_bytes: int | None = Field(None, ge=0, description="All transactions with at least so many bytes.")
    min_seconds: float | None = Field(None, ge=0, description="All transactions that lasted at least so many seconds.")


class History(Limited):
    """Arguments of `history`."""

    table: Text = Field(description="Table as SCHEMA.TABLE.")
    key: Text | int = Field(description="Primary key: VALUE, VALUE|VALUE for several columns, or COLUMN=VALUE.")


class State(Limited):
    """Arguments of `state`."""

    table: Text = Field(description="Table as SCHEMA.TABLE.")
    as_of: Text | None = Field(None, description=f"{_MOMENT} Without it, the end of the log.")


class SchemaChanges(Limited):
    """Arguments of `schema_changes`."""

    schema_: Texts = Field(None, alias="schema", description="Schemas; patterns with * and ?.")
    table: Texts = Field(None, description="Tables as SCHEMA.TABLE; patterns with * and ?.")
    since: Text | None = Field(None, description="From this time on, in UTC.")
    until: Text | None = Field(None, description="Before this time, in UTC.")


class Coverage(Limited):
    """Arguments of `coverage`."""


class UndoPreview(Arguments, Filtering):
    """Arguments of `undo_preview`."""

    redo: bool = Field(False, description="Preview a redo: do the changes again.")
    skip_conflicts: bool = Field(False, description="Leave out rows that later transactions changed.")
    with_dependents: bool = Field(False, description="Take these later transactions back, too.")
    force: bool = Field(False, description="Overwrite what later transactions wrote.")
    rows_only: bool = Field(False, description="Only the selected row changes, not their whole transactions.")
    columns: Texts = Field(None, description="Set only these columns.")
    by_transaction: bool = Field(False, description="One block for each transaction, in reverse of commit order.")
    with_cascades: bool = Field(False, description="Add rows that foreign keys changed without logging them.")
    json_as_text: bool = Field(False, description="Write texts in JSON as texts, even where they may be dates.")
    script_lines: int = Field(40, ge=0, le=400, description="Lines of the script that are shown.")

    @property
    def options(self) -> dict[str, Any]:
        """The options of the undo, by the names of `binloom.api`."""
        others = {*Filtering.model_fields, *Arguments.model_fields, "script_lines"}
        return self.model_dump(exclude_none=True, exclude=others)
