"""A state as INSERT statements: rows that cannot be written are named, and a doubtful definition is refused."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from ingest.landing.schema_history import SchemaHistory
from ingest.sources.snapshots.snapshot import SchemaSnapshot
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from recover.sources.log import Log
from recover.timeline.as_of import Moment, moment_of
from recover.timeline.cascades import NO_CASCADES
from recover.timeline.events import Effect, Place, TableEvent
from recover.timeline.events import Table as LoggedTable
from recover.timeline.named_table import find_table
from recover.timeline.state import Row, State, state_of
from recover.undo.print import inserts as module
from recover.undo.print.inserts import DefinitionError, Inserts, inserts_of
from recover.undo.tables.table import Column, Table
from tests.support.places import PROJECT

TABLE = Table(
    ("shop", "boats"),
    (
        Column("id", "int", "int", is_nullable=False),
        Column("kind", "enum", "enum('sail','motor')", "utf8mb4", labels=("sail", "motor")),
        Column("twice", "int", "int", is_generated=True),
    ),
    ("id",),
)
GAP = TableEvent(Place(0, 1, 50), Effect.OBSCURES, "an incident */ of\nthe server", "binlog.000001")


class Rows(State):
    """A state with given rows."""

    def __init__(self, found: Sequence[Row]) -> None:
        moment = Moment(Place(0, 1, 100), "binlog.000001", None, None)
        table, columns = LoggedTable("s", "shop", "boats"), ("id", "kind", "twice")
        super().__init__(table, moment, columns, None, (), None, None, (), {}, NO_CASCADES)  # type: ignore[arg-type]
        self.found = found

    def rows(self) -> Iterator[Row]:
        return iter(self.found)


def row(number: int, kind: str | None = "sail", unknown: Sequence[str] = (), doubts: Sequence[TableEvent] = ()) -> Row:
    values = {"id": str(number), "kind": kind, "twice": str(2 * number)}
    return Row({name: value for name, value in values.items() if name not in unknown}, tuple(unknown), tuple(doubts))


def test_rows_that_cannot_be_written_are_named_and_counted() -> None:
    inserts = Inserts(Rows([row(1), row(2, unknown=["kind"]), row(3, kind=""), row(4, kind=None)]), TABLE)
    lines = list(inserts.lines())
    assert [line for text in lines for line in text.splitlines() if line.startswith("INSERT")] == [
        "INSERT INTO `shop`.`boats` (`id`, `kind`) VALUES (1, 'sail');",
        "INSERT INTO `shop`.`boats` (`id`, `kind`) VALUES (4, NULL);",
    ]
    assert "-- left out: id 2: the log does not contain kind" in lines
    assert any(line.startswith("-- left out: id 3: The empty text in column kind") for line in lines)
    assert (inserts.written, inserts.left_out) == (2, 2)


def test_a_generated_column_that_is_unknown_leaves_no_row_out() -> None:
    inserts = Inserts(Rows([row(1, unknown=["twice"])]), TABLE)
    assert "\n".join(inserts.lines()).count("INSERT") == 1


@pytest.mark.parametrize(
    ("data_type", "is_stored", "is_told"),
    [("timestamp", True, True), ("timestamp", False, False), ("datetime", True, False)],
)
def test_values_that_may_depend_on_a_time_zone_are_told(data_type: str, is_stored: bool, is_told: bool) -> None:
    columns = (
        Column("id", "int", "int"),
        Column("at", data_type, data_type),
        Column("day", "date", "date", is_generated=True, is_stored=is_stored),
    )
    lines = Inserts(Rows([]), replace(TABLE, columns=columns)).lines()
    assert any("not in this script: values of day of shop.boats that" in line for line in lines) == is_told


def test_uncertain_rows_have_a_comment_that_cannot_be_broken_out_of() -> None:
    lines = list(Inserts(Rows([row(1, doubts=[GAP])]), TABLE).lines())
    (remark,) = [line for line in lines if line.startswith("-- uncertain")]
    assert "\n" not in remark and "an incident" in remark


def test_transactions_have_a_bounded_size() -> None:
    text = "\n".join(Inserts(Rows([row(number) for number in range(1, 2502)]), TABLE).lines())
    assert re.findall(r"IF\(@binloom_rows = (\d+), 'COMMIT'", text) == ["1000", "1000", "501"]
    assert text.count("START TRANSACTION;") == 3


def test_foreign_keys_are_off_only_for_a_table_that_refers_to_itself() -> None:
    assert "SET SESSION foreign_key_checks = 1;" in list(Inserts(Rows([]), TABLE).lines())
    assert "SET SESSION foreign_key_checks = 0;" in list(Inserts(Rows([]), TABLE, True).lines())


def test_a_statement_that_reads_back_as_another_one_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "statement", lambda operation: "INSERT INTO `shop`.`boats` (`id`) VALUES (2)")
    with pytest.raises(Exception, match="not proved"):
        list(Inserts(Rows([row(1)]), TABLE).lines())


@pytest.fixture(scope="module")
def log() -> Log:
    """The recorded shop with a snapshot whose definitions the tests change."""
    shop = PROJECT / "samples" / "shop-mysql"
    return Log.of_whole_files(sorted(shop.glob("binlog.0*")), snapshot=read_snapshot_dir(shop / "schema"))


def with_snapshot_alone(log: Log, snapshot: SchemaSnapshot) -> Log:
    """Return a log without statements that define its tables."""
    return replace(log, snapshot=snapshot, history=SchemaHistory.of_snapshot(snapshot))


def state_of_orders(log: Log) -> State:
    table = find_table(log, "shop.orders")
    return state_of(log.connection, table, moment_of(log.connection, table.source_id, None))


def test_a_definition_of_the_moment_is_accepted(log: Log) -> None:
    assert "\n".join(inserts_of(log, state_of_orders(log)).lines()).count("INSERT INTO `shop`.`orders`") == 54


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"column_type": "double", "data_type": "double"}, "column discount_rate was float and is double"),
        ({"column_name": "discount"}, "only one of them has discount, discount_rate"),
    ],
)
def test_a_snapshot_with_another_definition_is_refused(log: Log, changes: dict[str, str], words: str) -> None:
    assert log.snapshot is not None
    columns = [
        {**column, **changes} if column["column_name"] == "discount_rate" else column for column in log.snapshot.columns
    ]
    other = with_snapshot_alone(log, replace(log.snapshot, columns=columns))
    with pytest.raises(DefinitionError, match=words):
        inserts_of(other, state_of_orders(log))


def test_the_statements_of_the_log_count_more_than_a_snapshot(log: Log) -> None:
    assert log.snapshot is not None
    inserts = inserts_of(log, state_of_orders(log))
    assert inserts.origin.startswith("CREATE TABLE at binlog.000001:")
    other = with_snapshot_alone(log, log.snapshot)
    assert inserts_of(other, state_of_orders(log)).origin == "the export of information_schema"


def test_a_moment_that_nothing_describes_is_refused(log: Log) -> None:
    assert log.snapshot is not None
    columns = [column for column in log.snapshot.columns if column["table_name"] != "orders"]
    other = with_snapshot_alone(log, replace(log.snapshot, columns=columns, keys=[], foreign_keys=[]))
    with pytest.raises(DefinitionError, match=r"Nothing describes shop\.orders as it was") as refused:
        inserts_of(other, state_of_orders(log))
    assert "snapshot --from-ddl FILE --at-file binlog." in str(refused.value)
