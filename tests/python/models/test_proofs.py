"""Each proof finds its own kind of defect and nothing else: logs of real servers, intact and deliberately damaged.

Each kind of damage is a separate source, all in one warehouse that is built once.
"""

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from binloom.commands.output import Format
from binloom.commands.quality import check
from ingest.binlog import TableFilter
from ingest.landing import IngestOptions, ingest, land_snapshot
from ingest.landing.baselines import land_baseline
from ingest.sources.baselines.consistent_read import ConsistentRead
from ingest.sources.files.directory import find_binlogs
from ingest.sources.servers.address import ServerAddress
from ingest.sources.snapshots.snapshot_ddl import read_snapshot_ddl
from ingest.warehouse.home import raw_table_dir
from tests.servers import DISTRIBUTIONS, Server
from tests.support.in_process import binloom_here
from tests.support.landing.binlogs import flip_bit
from tests.support.landing.spark import show_landed, without_session
from tests.support.models import broken
from tests.support.models.broken import Files
from tests.support.recover.landed_marts import assert_built_as_landed

pytestmark = [pytest.mark.mysql, pytest.mark.mariadb, pytest.mark.spark, pytest.mark.slow]

Dbt = Callable[..., dict[str, str]]

FIRST, SECOND, THIRD, NEWEST, UNNAMED = (f"binlog.{number:06d}" for number in range(1, 6))
HOUR = 3600
TABLE = "create table shop.orders (id int primary key, state varchar(20), note text)"


def run_shop(server: Server) -> None:
    """Write four files of transactions; the last one is still being written."""
    server.execute("create database shop", TABLE)
    rows = iter(range(1, 1000))
    for number in range(4):
        if number:
            server.flush()
        for _ in range(5):
            first, second = next(rows), next(rows)
            server.execute(
                "begin",
                f"insert into shop.orders values ({first}, 'new', null)",
                f"insert into shop.orders values ({second}, 'new', 'gift')",
                f"update shop.orders set state = 'paid' where id = {first}",
                "commit",
            )
        server.execute(f"delete from shop.orders where id = {next(rows) - 2}")
    if server.flavor == "mysql":
        with server.connect() as connection, connection.cursor() as cursor:
            for tag in ("", ":night", ":night"):
                cursor.execute(f"set gtid_next = 'automatic{tag}'")
                cursor.execute("update shop.orders set note = concat(coalesce(note, ''), '.')")
    else:
        with server.connect() as connection, connection.cursor() as cursor:
            for domain in (5, 0, 5):
                cursor.execute(f"set gtid_domain_id = {domain}")
                cursor.execute("update shop.orders set note = concat(coalesce(note, ''), '.')")
                connection.commit()


def log_as_statement(server: Server) -> None:
    """Log a change without images."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("set session binlog_format = statement")
        cursor.execute("insert into shop.orders values (5000, 'new', 'as text')")
        connection.commit()


def log_without_names(server: Server) -> bytes:
    """Write the next file, in which row images have no column names."""
    server.execute("set global binlog_row_metadata = minimal")
    server.flush()
    server.execute("insert into shop.orders values (6000, 'new', null)", "delete from shop.orders where id = 6000")
    return binlogs(server)[UNNAMED]


def write_past_the_log(server: Server, source: str, home: Path) -> Files:
    """Land a baseline of a source, change rows with and without logging it, and land another; return the files."""
    land_all_rows(server, source, home)
    server.execute("update shop.orders set state = 'sent' where id = 2")
    server.execute("set session sql_log_bin = 0", "update shop.orders set state = 'lost' where id = 5")
    land_all_rows(server, source, home)
    return binlogs(server)


def land_all_rows(server: Server, source: str, home: Path) -> None:
    """Land a baseline of the shop."""
    address = ServerAddress("127.0.0.1", server.port, "root")
    with ConsistentRead(address, TableFilter.of(schemas=["shop"])) as read:
        land_baseline(source, read.snapshot, read.tables, read.rows, finish=read.assert_unchanged, home=home)


def binlogs(server: Server) -> Files:
    """Return the server's current files."""
    return {path.name: path.read_bytes() for path in server.binlogs()}


def with_parts(files: Files, name: str, change: Callable[[list[broken.Event]], list[broken.Event]]) -> Files:
    """Return the files with the events of one file changed, as if the server had written it so."""
    return broken.each(files, lambda data: broken.written(change(broken.events(data))), [name])


def without_transaction(parts: list[broken.Event]) -> list[broken.Event]:
    return broken.without(parts, *broken.transactions(parts)[2])


def without_commit(parts: list[broken.Event]) -> list[broken.Event]:
    _, end = broken.transactions(parts)[2]
    return broken.without(parts, end - 1, end)


def with_incident(parts: list[broken.Event]) -> list[broken.Event]:
    return [*parts, broken.incident("the log could not be written")]


def a_rows_event(data: bytes) -> tuple[int, list[broken.Event]]:
    """Return the index of the first rows event after the first transaction, and the events of the file."""
    parts = broken.events(data)
    _, behind = broken.transactions(parts)[0]
    rows = (broken.WRITE_ROWS[0], broken.WRITE_ROWS[1])
    return next(place for place in range(behind, len(parts)) if parts[place].code in rows), parts


def event_cut_out(data: bytes) -> bytes:
    place, parts = a_rows_event(data)
    return broken.as_is(broken.without(parts, place, place + 1))


def byte_flipped(data: bytes) -> bytes:
    place, parts = a_rows_event(data)
    return flip_bit(data, len(broken.as_is(parts[: place + 1])) - 8)


def cut_inside_a_transaction(data: bytes) -> bytes:
    parts = broken.events(data)
    _, end = broken.transactions(parts)[-1]
    return broken.as_is(parts[: end - 1])


def earlier(hours: int) -> Callable[[bytes], bytes]:
    return lambda data: broken.written(broken.events(data), seconds=-hours * HOUR)


@dataclass(frozen=True)
class Source:
    """A source, and its expected violations: their number by quality model."""

    files: Files
    violations: dict[str, int] = field(default_factory=dict)
    options: IngestOptions = field(default_factory=IngestOptions)
    # The CREATE TABLE statement, as a user provides it.
    snapshot: str | None = None
    # Files of a second epoch, as after a RESET.
    later: Files = field(default_factory=dict)

    @property
    def data(self) -> list[bytes]:
        """The bytes of all files."""
        return [*self.files.values(), *self.later.values()]


def sources(flavor: str, whole: Files, with_statement: Files, unnamed: bytes, past: Files) -> dict[str, Source]:
    """Return an intact source, and a source for each kind of damage."""
    # A GTID list of MariaDB contains only the last GTID of each server and domain: a hole shows in the file itself.
    where_removed = "file_breaks" if flavor == "mysql" else "gtid_holes"
    without_second = {name: data for name, data in whole.items() if name != SECOND}
    skipping = IngestOptions(skip_bad_checksum=True)
    return {
        "whole": Source(whole),
        "file_missing": Source(
            broken.each(without_second, earlier(hours=5), [FIRST]), {"file_breaks": 1, "empty_hours": 1}
        ),
        # Rows that were inserted in the third file, and not deleted there, are inserted twice.
        "file_swapped": Source({**whole, SECOND: whole[THIRD]}, {"file_breaks": 2, "chain_breaks": 9}),
        "transaction_removed": Source(with_parts(whole, SECOND, without_transaction), {where_removed: 1}),
        "newest_transaction_removed": Source(with_parts(whole, NEWEST, without_transaction), {"gtid_holes": 1}),
        "commit_removed": Source(with_parts(whole, SECOND, without_commit), {"open_transactions": 1}),
        "transaction_cut": Source(
            broken.each(whole, cut_inside_a_transaction, [SECOND]), {"uncovered_bytes": 1, "file_breaks": 1}
        ),
        "event_removed": Source(broken.each(whole, event_cut_out, [SECOND]), {"uncovered_bytes": 1}),
        "byte_flipped": Source(broken.each(whole, byte_flipped, [SECOND]), {"failed_segments": 1}),
        "byte_passed_over": Source(broken.each(whole, byte_flipped, [SECOND]), {"uncovered_bytes": 1}, skipping),
        "events_lost": Source(with_parts(whole, NEWEST, with_incident), {"lost_events": 1}),
        "logged_as_statement": Source(with_statement, {"statement_format_changes": 1}),
        "written_past_the_log": Source(past, {"baseline_differences": 1, "statement_format_changes": 1}),
        "late": Source(broken.each(whole, earlier(hours=30)), {"late_sources": 1}),
        "row_event_lost": Source(whole, {"transaction_count_mismatches": 1, "row_events_unaccounted_for": 1}),
        "right_snapshot": Source({UNNAMED: unnamed}, snapshot=TABLE),
        # The snapshot has no position: it counts in both epochs.
        "snapshot_with_a_column_less": Source(
            {UNNAMED: unnamed},
            # The files before it are missing in the second epoch.
            {"quarantined_tables": 1, "file_breaks": 1},
            snapshot=TABLE.replace(", note text", ""),
            later={UNNAMED: broken.written(broken.events(unnamed), seconds=-60)},
        ),
        "snapshot_with_another_type": Source(
            {UNNAMED: unnamed}, {"quarantined_tables": 1}, snapshot=TABLE.replace("state varchar(20)", "state int")
        ),
    }


@dataclass
class Story:
    """The sources by name, and the states of all nodes of the build."""

    sources: dict[str, Source]
    states: dict[str, str]


def lose_a_row_event(home: Path, source: str) -> None:
    """Delete the first row event of a source from the raw table."""
    path = min(raw_table_dir("row_events", home).glob(f"source_id={source}/**/*.parquet"))
    pq.write_table(pq.ParquetFile(path).read().slice(1), path)


@pytest.fixture(scope="module")
@without_session()
def story(spark: Any, home: Path, dbt: Dbt, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Run the shop on both servers, damage the logs in every way, land them all, and build once."""
    landed: dict[str, Source] = {}
    for flavor, distribution in DISTRIBUTIONS.items():
        folder = tmp_path_factory.mktemp(flavor)
        with distribution.start(folder / "server", ["--binlog-row-metadata=FULL"]) as server:
            run_shop(server)
            whole = binlogs(server)
            log_as_statement(server)
            with_statement = binlogs(server)
            unnamed = log_without_names(server)
            past = write_past_the_log(server, f"{flavor}_written_past_the_log", home)
        for name, source in sources(flavor, whole, with_statement, unnamed, past).items():
            place = folder / name
            place.mkdir()
            for file, data in source.files.items():
                (place / file).write_bytes(data)
            if source.snapshot is not None:
                script = place / "schema.sql"
                script.write_text(f"{source.snapshot};\n")
                land_snapshot(f"{flavor}_{name}", read_snapshot_ddl(script, schema="shop"), home)
            ingest(f"{flavor}_{name}", find_binlogs(place), source.options, home=home)
            if source.later:
                (later := place / "later").mkdir()
                for file, data in source.later.items():
                    (later / file).write_bytes(data)
                second = IngestOptions(new_epoch=True)
                ingest(f"{flavor}_{name}", find_binlogs(later), second, home=home)
            landed[f"{flavor}_{name}"] = source
    for source in landed:
        if source.endswith("_row_event_lost"):
            lose_a_row_event(home, source)
    show_landed(spark, home)
    return Story(landed, dbt("build", "--exclude-resource-type", "unit_test"))


@pytest.fixture(scope="module")
def proofs(story: Story, spark: Any) -> dict[str, Any]:
    """Return the rows of table proofs, by the name of the proof."""
    return {row.proof: row for row in spark.sql("select * from binloom_quality.proofs").collect()}


def violations(spark: Any, model: str) -> Counter[str]:
    """Return the number of rows of a quality model by source."""
    rows = spark.sql(f"select source_id, count(*) from binloom_quality.{model} group by source_id").collect()
    return Counter({row[0]: row[1] for row in rows})


def test_each_source_has_its_violations_and_no_other(story: Story, spark: Any, proofs: dict[str, Any]) -> None:
    found: dict[str, dict[str, int]] = {source: {} for source in story.sources}
    for model in {row.quality_model for row in proofs.values()}:
        for source, count in violations(spark, model).items():
            found[source][model] = count
    assert found == {name: source.violations for name, source in story.sources.items()}


def test_questions_have_the_same_marts_before_a_build(story: Story, home: Path, tmp_path: Path) -> None:
    assert_built_as_landed(home, tmp_path)


def test_what_is_an_error_fails_the_build_and_what_may_be_meant_warns(story: Story) -> None:
    of_proofs = {name: state for name, state in story.states.items() if state in ("fail", "warn")}
    errors = {
        "uncovered_bytes",
        "file_breaks",
        "gtid_holes",
        "open_transactions",
        "transaction_count_mismatches",
        "row_events_unaccounted_for",
        "lost_events",
    }
    warnings = {
        "late_sources",
        "empty_hours",
        "statement_format_changes",
        "chain_breaks",
        "quarantined_tables",
        "baseline_differences",
    }
    assert of_proofs == {
        **{f"is_empty_{name}_": "fail" for name in errors},
        **{f"is_empty_{name}_": "warn" for name in warnings},
        "failed_segments_have_not_failed": "fail",
    }


def test_proofs_count_what_was_found_and_looked_at(story: Story, spark: Any, proofs: dict[str, Any]) -> None:
    for proof in proofs.values():
        if proof.quality_model == proof.proof and proof.proof not in ("failed_segments", "stream_gaps"):
            assert proof.violations_by_source == dict(violations(spark, proof.proof))
        assert proof.violations == sum(proof.violations_by_source.values())
        assert proof.violation and proof.checked > 0
    # Two proofs of one model say what each finds.
    assert len({proof.violation for proof in proofs.values()}) == len(proofs)
    assert proofs["failed_segments"].violations_by_source == {"mysql_byte_flipped": 1, "mariadb_byte_flipped": 1}
    files = [data for one in story.sources.values() for data in one.data]
    assert proofs["file_breaks"].checked == len(files)
    assert proofs["uncovered_bytes"].checked == sum(map(len, files))
    assert proofs["late_sources"].checked == len(story.sources)
    assert (
        proofs["gtid_holes"].checked == spark.sql("select 1 from binloom.transactions where gtid is not null").count()
    )
    assert proofs["duplicate_row_changes"].checked == spark.sql("select 1 from binloom.row_changes").count()
    assert (proofs["file_breaks"].severity, proofs["late_sources"].severity) == ("error", "warn")


def printed(source: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, dict[str, Any]], str]:
    """Return the exit code of `binloom quality`, its rows by name, and its messages."""
    code = check(source, Format.JSON)
    output = capsys.readouterr()
    return code, {row["name"]: row for row in map(json.loads, output.out.splitlines())}, output.err


def test_quality_prints_a_line_for_every_proof(
    story: Story, proofs: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    code, rows, said = printed("mysql_whole", capsys)
    assert (code, said) == (0, "")
    assert [name for name, row in rows.items() if row["suite"] == "proofs"] == sorted(
        proofs, key=lambda name: proofs[name].proof_number
    )
    assert {row["success"] for row in rows.values()} == {True}
    assert rows["file_breaks"]["checked"] == proofs["file_breaks"].checked
    assert rows["file_breaks"]["unit"] == "files"


@pytest.mark.parametrize(
    ("source", "code", "expected"),
    [
        # Rows that the missing file changed differ in the next file.
        ("mysql_file_swapped", 1, {"file_breaks": "error", "chain_breaks": "warn"}),
        ("mariadb_late", 0, {"late_sources": "warn"}),
        (
            "mysql_row_event_lost",
            1,
            {"transaction_count_mismatches": "error", "row_events_unaccounted_for": "error"},
        ),
    ],
)
def test_quality_ends_with_1_for_an_error_alone(
    story: Story, capsys: pytest.CaptureFixture[str], source: str, code: int, expected: dict[str, str]
) -> None:
    ended, rows, _ = printed(source, capsys)
    assert ended == code
    broken = {name: row for name, row in rows.items() if row["suite"] == "proofs" and row["violations"]}
    assert {name: row["severity"] for name, row in broken.items()} == expected
    assert not any(row["success"] for row in broken.values())


def test_quality_says_when_the_models_are_behind(
    story: Story, spark: Any, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = home / "warehouse" / "binloom_quality.db" / "proofs"
    for part in table.glob("*.parquet"):
        os.utime(part, (0, 0))
    assert "new rows were landed after the models were built" in printed("mysql_whole", capsys)[2]
    hidden = table.rename(table.with_name("proofs_hidden"))
    code, rows, said = printed("mysql_file_swapped", capsys)
    hidden.rename(table)
    assert "Run `dbt build` for the proofs." in said
    # The landed data equals the decoded data; only the models know that the files do not belong together.
    assert (code, {row["suite"] for row in rows.values()}) == (
        0,
        {"landed_segments", "landed_files", "landed_definitions"},
    )


def test_severities_are_changed_by_name(story: Story, dbt: Dbt) -> None:
    # Proofs that are not named keep their severity.
    changed = "{proof_severity: {late_sources: error, lost_events: warn, failed_segments: warn}}"
    models = ["late_sources", "lost_events", "failed_segments", "empty_hours"]
    states = dbt("test", "--select", *models, "--exclude-resource-type", "unit_test", "--vars", changed)
    assert {name: state for name, state in states.items() if state not in ("pass", "success")} == {
        "is_empty_late_sources_": "fail",
        "is_empty_lost_events_": "warn",
        "failed_segments_have_not_failed": "warn",
        "is_empty_empty_hours_": "warn",
    }


def test_what_the_code_guarantees_holds_for_damaged_logs_too(story: Story, dbt: Dbt) -> None:
    of_code = ["test_name:guaranteed_key", "test_name:guaranteed_value", "test_name:guaranteed_values"]
    states = dbt("test", "--select", *of_code, "--vars", "{test_guarantees: true}")
    assert {name: state for name, state in states.items() if state not in ("pass", "success")} == {}
    assert sum(state == "pass" for state in states.values()) > 40


@pytest.mark.parametrize("flavor", DISTRIBUTIONS)
def test_a_row_is_erased_from_quarantine_in_every_epoch(story: Story, home: Path, tmp_path: Path, flavor: str) -> None:
    source = f"{flavor}_snapshot_with_a_column_less"
    # The session of this module holds the metastore of the home.
    copy = Path(shutil.copytree(home, tmp_path / "home"))
    before = row_events(copy, source)
    of_row = [row for row in before if "6000" in values(row)]
    assert Counter((row["epoch"], row["event_type"]) for row in of_row) == {
        (epoch, kind): 1 for epoch in (0, 1) for kind in ("INSERT", "DELETE")
    }
    row = ("--source", source, "--table", "shop.orders", "--key", "6000")
    erased = binloom_here("erase", *row, "--apply", env={"BINLOOM_HOME": str(copy)})
    assert erased.returncode == 0, erased.stderr
    after = row_events(copy, source)
    assert [new for old, new in zip(before, after, strict=True) if old not in of_row] == [
        old for old in before if old not in of_row
    ]
    assert not any({"6000", "new"} & values(new) for old, new in zip(before, after, strict=True) if old in of_row)


def row_events(home: Path, source: str) -> list[dict[str, Any]]:
    """Return the landed row events of a source, with the epochs that are in the names of their folders."""
    return [
        {**row, "epoch": int(path.parts[path.parts.index(f"source_id={source}") + 1].partition("=")[2])}
        for path in sorted(raw_table_dir("row_events", home).glob(f"source_id={source}/**/*.parquet"))
        for row in pq.ParquetFile(path).read().to_pylist()
    ]


def values(row: dict[str, Any]) -> set[str]:
    """Return the values of both images."""
    return {value for image in ("before", "after") for value in row[f"{image}_values"] or () if value is not None}
