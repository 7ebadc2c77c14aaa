"""Row changes of one table, and the other events of the log that change its rows."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from recover.timeline.readings import Reading

Image = dict[str, str | None]
"""Column name to value, as text. None is SQL NULL; a column without an entry is unknown."""


@dataclass(frozen=True)
class Table:
    """A table of a source, as the mart `row_changes` names it."""

    source_id: str
    schema_name: str
    table_name: str

    def __str__(self) -> str:
        return f"{self.schema_name}.{self.table_name}"

    @property
    def parameters(self) -> dict[str, Any]:
        """The names as parameters of a query."""
        return {"source": self.source_id, "schema": self.schema_name, "table": self.table_name}


class Place(NamedTuple):
    """A place in the log of a source: later places are greater."""

    epoch: int
    file_sequence: int
    pos: int


class JsonChange(NamedTuple):
    """A change of a JSON document, of which the log does not contain the document."""

    column_name: str
    operation: str
    path: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one row that took effect.

    Attributes
    ----------
    place
        Where the change took effect: its own place, or that of the XA COMMIT of its prepared transaction.
    group
        Equal for all changes of rows that share a key, directly or through changes of keys.
    key, key_after
        The row's key before and after the change: `pk_values`, or all values of a table without a primary key.
        Equal if the change keeps the key; an INSERT has no key before, a DELETE none after.
    has_key
        Whether the table has a primary key.
    before, after
        The images that the log contains; None where the event has no such image.
    json_changes
        Changes of documents that `after` does not contain.
    """

    change_id: str
    place: Place
    binlog_file: str
    start_pos: int
    transaction_id: str
    group: int
    event_type: str
    key: str | None
    key_after: str | None
    has_key: bool
    before: Image | None
    after: Image | None
    undecoded_columns: tuple[str, ...]
    json_changes: tuple[JsonChange, ...]
    table_version_id: str
    gtid: str | None
    committed_at: datetime | None
    event_timestamp: datetime | None
    thread_id: int | None


class Effect(StrEnum):
    """The effect of an event on the rows of a table."""

    EMPTIES = "empties"
    """The table has no rows afterwards: TRUNCATE, DROP, CREATE."""
    REPLACES = "replaces"
    """The table has other rows afterwards, which are unknown: RENAME."""
    ALTERS = "alters"
    """The rows have other columns or another key afterwards: ALTER TABLE; `alteration` tells which."""
    OBSCURES = "obscures"
    """Any row may be another afterwards: a gap, a statement in the log, a row that could not be decoded."""


class Hiding(StrEnum):
    """What an event says of the rows that are written after it."""

    ENDS = "ends"
    """The log shows them, unless another table hides them."""
    BEGINS = "begins"
    """They are uncertain."""
    LASTS = "lasts"
    """They are uncertain, whatever becomes of the table."""


@dataclass(frozen=True, slots=True)
class TableEvent:
    """An event that changes rows of a table, or may change them, and does not list them.

    Attributes
    ----------
    effect
        The effect on the rows of the table.
    reason
        The event in words, such as `TRUNCATE TABLE`.
    binlog_file
        File of the place.
    actions
        For a statement, its steps as in the mart `schema_changes`.
    statement, default_schema
        Its text, and the schema of names without a schema.
    has_literals
        Whether the text has the values of the statement, and not those of masks.
    hiding
        What it says of later rows; None: nothing.
    at, gtid, thread_id
        Of the event, where the log has them.
    """

    place: Place
    effect: Effect
    reason: str
    binlog_file: str
    actions: tuple[str, ...] = ()
    statement: str = field(default="", repr=False)
    default_schema: str | None = None
    has_literals: bool = True
    at: datetime | None = None
    gtid: str | None = None
    thread_id: int | None = None
    hiding: Hiding | None = None

    @property
    def readings(self) -> "tuple[Reading, ...]":
        """The steps with all that the statement says, once for each way to read it; see `readings_of`."""
        from recover.timeline.readings import readings_of

        return readings_of(self.statement, self.default_schema, self.actions, self.has_literals)

    def __str__(self) -> str:
        return f"{self.reason} at {self.binlog_file}:{self.place.pos}"
