"""The rows of a baseline's tables that a part of the log changes, as the versions of each row.

The part is between a position that is before a snapshot and one that is after it. What the log cannot tell about the
tables, such as a statement that changed them, makes the part `Unproved`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ingest.binlog import SchemaHints, open_binlog
from ingest.ddl.batches import statement_actions
from ingest.ddl.dml.dml_batches import TargetReader
from ingest.ddl.verbs import may_be_ddl
from ingest.sources.baselines.baseline_tables import BaselineTable
from ingest.sources.baselines.cascades import Cascades
from ingest.sources.baselines.row_versions import ABSENT, UNKNOWN, Image, NotInLogError, RowVersions

if TYPE_CHECKING:
    from ingest.sources.baselines.log_part import LogPart
    from ingest.sources.servers.information_schema import Schema
    from ingest.sources.servers.server import ServerIdentity

MOST_ROWS: Final = 1_000_000
_EXECUTED: Final = ("QUERY", "LOAD")

Name = tuple[str, str]
Key = tuple[str | None, ...]


class Unproved(Exception):
    """The log does not tell all changes of a table; its text is the reason, a sentence without a full stop."""


class UnloggedWriteError(Exception):
    """A change begins with another row than the change before it left; it has the table, the key and the position."""

    def __init__(self, table: BaselineTable, key: Key, place: str) -> None:
        super().__init__(table, key, place)
        self.table, self.key, self.place = table, key, place


@dataclass
class LoggedChanges:
    """Changes of the tables, in commit order.

    Attributes
    ----------
    rows
        The versions of each changed row, by table and key.
    transactions
        Number of transactions in the part.
    gtids
        Their GTIDs, as far as they have one.
    """

    rows: dict[Name, dict[Key, RowVersions]] = field(default_factory=dict)
    transactions: int = 0
    gtids: list[str] = field(default_factory=list)

    @property
    def row_count(self) -> int:
        """Number of changed rows."""
        return sum(map(len, self.rows.values()))


def read_changes(
    parts: Iterable["LogPart"],
    tables: Sequence[BaselineTable],
    schema: "Schema",
    identity: "ServerIdentity",
    cascades: Cascades,
) -> LoggedChanges:
    """Read what a part of the log changes in some tables.

    Parameters
    ----------
    tables, schema
        The tables, and the definitions of all tables. They hold in the whole part.
    cascades
        The foreign keys that change rows of the tables without logging it.

    Raises
    ------
    Unproved
        The log does not tell all changes of the tables.
    UnloggedWriteError
        Something changed a row without logging it.
    BinlogError
        The bytes cannot be decoded.
    """
    reading = _Reading(tables, schema, identity, cascades)
    for part in parts:
        reading.read(part)
    return reading.found


class _Reading:
    def __init__(
        self, tables: Sequence[BaselineTable], schema: "Schema", identity: "ServerIdentity", cascades: Cascades
    ) -> None:
        self.found = LoggedChanges()
        self._tables = {(table.schema_name, table.table_name): table for table in tables}
        self._folded = {(schema.lower(), table.lower()) for schema, table in self._tables}
        self._generated = {
            name: [
                at
                for at, column in enumerate(row for row in schema[0] if (row["schema_name"], row["table_name"]) == name)
                if column["is_generated"]
            ]
            for name in self._tables
        }
        self._hints = SchemaHints.from_columns(schema[0])
        self._identity = identity
        self._targets = TargetReader(identity.flavor, identity.version)
        self._cascades = cascades
        self._wanted = pa.array([table for _, table in {*self._tables, *cascades.parents}], pa.string())

    def read(self, part: "LogPart") -> None:
        rows: list[dict[str, Any]] = []
        transactions: dict[int, dict[str, Any]] = {}
        for kind, batch in open_binlog(part, hints=self._hints, start=part.start, end=part.end).batches():
            if kind == "row_events":
                rows += self._wanted_rows(batch)
                if len(rows) > MOST_ROWS:
                    raise Unproved(f"more than {MOST_ROWS} rows changed while the snapshot began")
            elif kind == "transactions":
                transactions |= {row["start_pos"]: row for row in batch.to_pylist()}
            elif kind == "statements":
                for statement in batch.to_pylist():
                    self._check_statement(statement, part)
            elif kind == "unsupported_events":
                for event in batch.to_pylist():
                    self._check_unread(event, part)
        for transaction in transactions.values():
            self._take_transaction(transaction, part)
        for row in rows:
            if _is_committed(row, transactions):
                self._take_row(row, part)

    def _wanted_rows(self, batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
        # The name of the table alone is enough to leave out most rows of the log.
        chosen = batch.filter(pc.is_in(batch["table_name"].cast(pa.string()), self._wanted))
        yield from chosen.to_pylist()

    def _take_transaction(self, transaction: Mapping[str, Any], part: "LogPart") -> None:
        self.found.transactions += 1
        if transaction["gtid"]:
            self.found.gtids.append(transaction["gtid"])
        ends_another = transaction["xa_xid"] is not None and not transaction["row_events"]
        if ends_another and transaction["outcome"] == "commit":
            raise Unproved(
                f"the transaction at {_place(part, transaction)} commits a prepared transaction (XA) of before"
            )

    def _check_statement(self, statement: Mapping[str, Any], part: "LogPart") -> None:
        text = statement["sql_text"] or ""
        if statement["kind"] not in _EXECUTED:
            return
        if any(self._may_be_asked(*named) for named in self._named_by(statement, text)):
            raise Unproved(f"the statement at {_place(part, statement)} may change a table of the baseline")

    def _named_by(self, statement: Mapping[str, Any], text: str) -> Iterator[tuple[str | None, str | None]]:
        """Yield the tables that a statement changes, each as schema and table; None for any of them."""
        if not may_be_ddl(text):
            for target in self._targets.targets(text, statement["default_schema"], statement["sql_mode"]):
                yield target.schema_name, target.table_name
            return
        for action in statement_actions(statement, self._identity.flavor, self._identity.version_numbers):
            if action.action == "not_understood":
                yield None, None
            for schema, table in (
                (action.schema_name, action.table_name),
                (action.other_schema_name, action.other_table_name),
            ):
                if schema is not None or table is not None:
                    yield schema, table

    def _check_unread(self, event: Mapping[str, Any], part: "LogPart") -> None:
        if event["table_name"] is None or self._may_be_asked(event["schema_name"], event["table_name"]):
            raise Unproved(f"the event at {_place(part, event)} cannot be decoded: {event['reason']}")

    def _may_be_asked(self, schema: str | None, table: str | None) -> bool:
        return any(
            (schema is None or schema.lower() == known[0]) and (table is None or table.lower() == known[1])
            for known in self._folded
        )

    def _take_row(self, row: Mapping[str, Any], part: "LogPart") -> None:
        name: Name = (row["schema_name"], row["table_name"])
        if self._cascades.may_follow(name, row):
            raise Unproved(
                f"the change of {'.'.join(name)} at {_place(part, row)} may cascade to rows of the baseline, and the"
                " server does not log that"
            )
        table = self._tables.get(name)
        if table is None:
            return
        if table.primary_key_ordinals is None:
            raise Unproved(f"table {table} has no primary key, and a row of it changed at {_place(part, row)}")
        before, after = self._images(table, row)
        keys = [None if image is None else _key(image, table) for image in (before, after)]
        if before is not None and after is not None and keys[1] != keys[0]:
            if any(value is ABSENT for at, value in enumerate(after) if at in table.primary_key_ordinals):
                raise Unproved(f"the image of {table} at {_place(part, row)} lacks a part of its key")
            self._add(table, keys[0], before, None, row, part)
            self._add(table, keys[1], None, tuple(map(_known_or_not, after)), row, part)
        else:
            self._add(table, keys[0] if before is not None else keys[1], before, after, row, part)

    def _add(
        self,
        table: BaselineTable,
        key: tuple[Any, ...] | None,
        before: Image | None,
        after: Image | None,
        row: Mapping[str, Any],
        part: "LogPart",
    ) -> None:
        if key is None or any(not isinstance(value, str) for value in key):
            raise Unproved(f"the image of {table} at {_place(part, row)} lacks a part of its key")
        of_table = self.found.rows.setdefault((table.schema_name, table.table_name), {})
        try:
            of_table.setdefault(key, RowVersions()).change(before, after)
        except NotInLogError:
            raise UnloggedWriteError(table, key, _place(part, row)) from None

    def _images(self, table: BaselineTable, row: Mapping[str, Any]) -> tuple[Image | None, Image | None]:
        width, kind = len(table.column_names), row["event_type"]
        if row["column_count"] < width:
            raise Unproved(f"the rows of {table} in the log have fewer columns than the table")
        before = None if kind == "INSERT" else _image(row["before_values"], row["before_columns"], width)
        if kind == "DELETE":
            return before, None
        unknown = {*(row["undecoded_columns"] or ())}
        after = list(_image(row["after_values"], row["after_columns"], width))
        if kind == "INSERT":
            unknown |= {at for at, value in enumerate(after) if value is ABSENT}
        elif row["after_columns"] is not None:
            # A partial image may lack a generated column that changed with another one.
            unknown |= {at for at in self._generated[table.schema_name, table.table_name] if after[at] is ABSENT}
            if before is not None:
                ordinals = table.primary_key_ordinals or ()
                after = [before[at] if at in ordinals and value is ABSENT else value for at, value in enumerate(after)]
        return before, tuple(UNKNOWN if at in unknown else value for at, value in enumerate(after))


def _is_committed(row: Mapping[str, Any], transactions: Mapping[int, Mapping[str, Any]]) -> bool:
    transaction = transactions.get(row["transaction_pos"])
    if transaction is None or transaction["outcome"] == "none":
        raise Unproved(f"the transaction at position {row['transaction_pos']} of the log has no end")
    place = (row["start_pos"], row["payload_ordinal"])
    for one in transaction["rolled_back_ranges"] or ():
        if (one["start_pos"], one["start_ordinal"]) <= place < (one["end_pos"], one["end_ordinal"]):
            if one["outcome"] != "rollback":
                raise Unproved(f"the log does not tell whether the rows at position {row['start_pos']} were kept")
            return False
    return bool(transaction["outcome"] == "commit")


def _image(values: Sequence[str | None], present: Sequence[int] | None, width: int) -> Image:
    if present is None:
        return tuple(values[:width])
    return tuple(value if at in present else ABSENT for at, value in enumerate(values[:width]))


def _known_or_not(value: Any) -> Any:
    """Return a value of a row under its new key: one that the image lacks is that of the row under its old key."""
    return UNKNOWN if value is ABSENT else value


def _key(image: Image, table: BaselineTable) -> tuple[Any, ...]:
    return tuple(image[at] for at in table.primary_key_ordinals or ())


def _place(part: "LogPart", event: Mapping[str, Any]) -> str:
    return f"{part.name}:{event['start_pos']}"
