"""A dump: definitions and rows of tables at a position of the log, whatever program has written it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from ingest.binlog import TableFilter
from ingest.binlog.text.charsets import BEYOND_BMP
from ingest.errors import SnapshotInputError, UsageError
from ingest.sources.baselines.baseline_tables import BaselineTable
from ingest.sources.dumps.dump_values import is_exact
from ingest.sources.snapshots.snapshot import SchemaSnapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

TableName = tuple[str, str]


class Dump(ABC):
    """A dump: definitions and position, tables, and their rows.

    Parameters
    ----------
    place
        Where it is, for messages.
    snapshot
        The definitions, and the position.
    engines
        By table, the engine that its CREATE TABLE names, in upper case.
    server_version
        Version of the server, if the dump tells it.
    wanted
        Filter of the tables; None for all.
    with_rounded
        Whether the values of a FLOAT, and of a DOUBLE(M,D), are taken with the few digits that a dump has of them.

    Attributes
    ----------
    names
        Schema and name of all tables.
    triggered
        Those of them with triggers, as far as the dump tells.
    """

    triggered: frozenset[TableName] = frozenset()

    def __init__(
        self,
        place: str,
        snapshot: SchemaSnapshot,
        engines: Mapping[TableName, str],
        server_version: str | None,
        wanted: TableFilter | None,
        *,
        with_rounded: bool,
    ) -> None:
        self.place = place
        self.snapshot = snapshot
        self.engines = engines
        self.server_version = server_version
        self._wanted = wanted
        self._with_rounded = with_rounded
        self._columns: dict[TableName, list[dict[str, Any]]] = {}
        for row in snapshot.columns:
            self._columns.setdefault((row["schema_name"], row["table_name"]), []).append(row)
        self.names: tuple[TableName, ...] = tuple(self._columns)
        if snapshot.binlog_file is None:
            raise self._failure("it does not name its position in the binlog", self._position_hint)

    @property
    @abstractmethod
    def content(self) -> str:
        """Hash of its bytes."""

    @property
    def is_whole(self) -> bool:
        """Whether it has an end; without one, nobody can tell whether it is cut off."""
        return True

    @property
    @abstractmethod
    def _position_hint(self) -> str:
        """How to write a dump that names its position."""

    @abstractmethod
    def has_data(self, table: BaselineTable) -> bool:
        """Return whether the rows of a table were dumped: an empty table looks like one of a dump without rows."""

    @abstractmethod
    def rows(self, table: BaselineTable) -> "Iterator[pa.ListArray]":
        """Yield the rows of a table, each a list of texts.

        Raises
        ------
        SnapshotInputError
            The rows cannot be read; the message names the place.
        """

    @abstractmethod
    def _named_columns(self, name: TableName) -> Sequence[str] | None:
        """Return the columns that the rows of a table have, in their order; None for all."""

    @abstractmethod
    def _assert_meaning(self, name: TableName, columns: Sequence[dict[str, Any]]) -> None:
        """Refuse a table if the dump does not tell the time zone or the character set of some columns."""

    @cached_property
    def tables(self) -> tuple[BaselineTable, ...]:
        """The tables that the filter takes. Raises like `table`, and if there is none."""
        taken = (name for name in self.names if self._wanted is None or self._wanted.takes(*name))
        found = tuple(map(self.table, taken))
        if not found:
            known = ", ".join(".".join(name) for name in islice(self.names, 5))
            raise UsageError(f"No table of {self.place} is selected.", hint=f"It has {known}.")
        return found

    def table(self, name: TableName) -> BaselineTable:
        """Return a table, with the columns whose values the dump has.

        Raises
        ------
        SnapshotInputError
            The dump does not tell what the values of the table mean.
        """
        known = [row for row in self._read_columns(name) if self._is_taken(row)]
        names = [row["column_name"] for row in known]
        keys = [row["column_name"] for row in self._columns[name] if row["primary_key_ordinal"]]
        self._assert_meaning(name, known)
        has_key = bool(keys) and all(key in names for key in keys)
        return BaselineTable(
            *name,
            column_names=tuple(names),
            data_types=tuple(row["data_type"] for row in known),
            primary_key_ordinals=tuple(sorted(names.index(key) for key in keys)) if has_key else None,
        )

    def rounded_columns(self, table: BaselineTable) -> tuple[str, ...]:
        """Return the columns of a table that a dump has only with fewer digits than the server."""
        rows = self._columns[table.schema_name, table.table_name]
        return tuple(row["column_name"] for row in rows if not is_exact(row))

    def _is_taken(self, column: dict[str, Any]) -> bool:
        return self._with_rounded or is_exact(column)

    def _read_columns(self, name: TableName) -> list[dict[str, Any]]:
        """Return the definitions of the columns that the rows of a table have, in their order."""
        columns, named = self._columns[name], self._named_columns(name)
        if named is None:
            return columns
        by_name = {row["column_name"]: row for row in columns}
        if unknown := [one for one in named if one not in by_name]:
            raise self._failure(f"table {'.'.join(name)} has no column {unknown[0]}", "Write it anew.")
        return [by_name[one] for one in named]

    def _assert_time_zone(self, name: TableName, columns: Sequence[dict[str, Any]], hint: str) -> None:
        """Refuse a table with moments in a time zone that nobody knows."""
        if any(row["data_type"] == "timestamp" for row in columns):
            raise self._failure(f"the time zone of {'.'.join(name)} is unknown", hint)

    def _assert_no_question_marks(self, name: TableName, columns: Sequence[dict[str, Any]], hint: str) -> None:
        """Refuse a table with characters that a dump in utf8mb3 cannot have."""
        for row in columns:
            if row["data_type"] == "json" or row["character_set"] in BEYOND_BMP:
                raise self._failure(
                    f"its text is utf8mb3, which has not all characters of column {row['column_name']} of"
                    f" {'.'.join(name)}",
                    hint,
                )

    def _failure(self, message: str, hint: str, *, where: str | None = None) -> SnapshotInputError:
        return SnapshotInputError(f"{where or self.place}: {message}.", hint=hint, path=self.place)
