"""Files that are decoded on the spot give the row changes that the warehouse has for them."""

import gzip
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ingest.binlog import open_binlog
from ingest.errors import UsageError
from ingest.landing.hints_of_files import hints_by_file
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from recover.selection.filters import Filters, key_text
from recover.sources.files.decoded_rows import add_tables
from recover.sources.files.missing_parts import leads_to
from recover.sources.files.row_filter import rows_with_keys
from recover.sources.log import VIEWS, Log
from recover.timeline.as_of import moment_of
from recover.timeline.named_table import find_table
from recover.timeline.state import state_of
from recover.timeline.table_log import MARTS
from tests.servers import ALL_DISTRIBUTIONS
from tests.support.binlog.cut_files import cut_inside_a_transaction
from tests.support.command_line import assert_sentence
from tests.support.in_process import binloom_here
from tests.support.models.broken import events, written
from tests.support.older_warehouse import FIRST_FILE, LANDED, SAMPLE, unpack
from tests.support.places import FIXTURES, PROJECT, SAMPLES

SHOP = PROJECT / "samples" / SAMPLE
WITH_SCHEMA = sorted(
    FIXTURES / f"{folder.name.removesuffix('-schema')}.binlog"
    for folder in FIXTURES.glob("*-schema")
    if (FIXTURES / f"{folder.name.removesuffix('-schema')}.binlog").exists()
)
WITH_NAMES = [FIXTURES / f"{flavor}-metadata-full.binlog" for flavor in ("mysql", "mariadb")]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which a file of the sample is landed and built."""
    return unpack(tmp_path_factory.mktemp("home"))


def rows(log: Log, query: str) -> list[dict[str, Any]]:
    cursor = log.connection.execute(query)
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@pytest.mark.parametrize("table", ["row_changes", "transactions"])
@pytest.mark.parametrize("names", ["snapshot", "warehouse"])
def test_a_landed_file_gives_what_the_warehouse_has(home: Path, table: str, names: str) -> None:
    snapshot = read_snapshot_dir(SHOP / "schema") if names == "snapshot" else None
    from_home = home if names == "warehouse" else None
    decoded = Log.of_files([SHOP / FIRST_FILE], Filters(), source_id=LANDED, snapshot=snapshot, home=from_home)
    query = f"select * from binloom.{table} where source_id = '{LANDED}' order by start_pos"
    if table == "row_changes":
        query += ", payload_ordinal, row_ordinal"
    expected, found = rows(Log.of_warehouse(home), query), rows(decoded, query)
    assert len(expected) == len(found) > 50
    # A mart has only the columns that the binloom that built it knew. Decoded files are never landed.
    columns = [name for name in expected[0] if name not in ("landed_at", "segment_start")]
    assert len(columns) > 20
    for name in columns:
        assert [row[name] for row in found] == [row[name] for row in expected], name


@pytest.mark.parametrize("path", [*WITH_SCHEMA, *WITH_NAMES], ids=lambda path: path.stem)
def test_rows_are_those_of_the_decoder(path: Path) -> None:
    folder = path.with_name(f"{path.stem}-schema")
    snapshot = read_snapshot_dir(folder) if folder.is_dir() else None
    log = Log.of_files([path], Filters(), snapshot=snapshot)
    found = {
        (row["start_pos"], row["payload_ordinal"], row["row_ordinal"]): row
        for row in rows(log, "select * from binloom.row_changes")
    }
    versions = {version.table_version_id: version for version in log.versions}
    (quarantined,) = log.connection.execute(
        "select count(*) from binloom.quarantined_row_events where reason != 'decode_error'"
    ).fetchone() or (0,)
    decoded = list(_decoded(path, snapshot))
    assert len(found) + quarantined == len(decoded) > 0
    assert found
    for event in decoded:
        if (row := found.get((event["start_pos"], event["payload_ordinal"], event["row_ordinal"]))) is None:
            continue
        version = versions[row["table_version_id"]]
        names = [column.name for column in version.columns]
        before = None if event["event_type"] == "INSERT" else _image(event, "before", names)
        after = None if event["event_type"] == "DELETE" else _image(event, "after", names)
        assert (row["row_before"], row["row_after"]) == (before, after)
        assert row["gtid"] == event["gtid"] and row["table_name"] == event["table_name"]
        old, new = before if before is not None else after, {**(before or {}), **(after or {})}
        key = _key(version.primary_key, old or {})
        assert row["pk_values"] == key
        assert row["pk_hash"] == (None if key is None else sha256(key.encode()).hexdigest())
        if before is None or after is None:
            assert row["pk_values_after"] is None and row["changed_columns"] is None
            continue
        assert row["pk_values_after"] == (
            None if _key(version.primary_key, new) == key else _key(version.primary_key, new)
        )
        undecoded = {names[ordinal] for ordinal in event["undecoded_columns"] or ()}
        changed = [
            name
            for name in names
            if name in undecoded or (name in after and (name not in before or before[name] != after[name]))
        ]
        assert row["changed_columns"] == changed
        assert set(row["undecoded_columns"] or ()) == undecoded
        assert [one["column_name"] for one in row["json_changes"] or ()] == [
            names[one["column_ordinal"]] for one in event["json_changes"] or ()
        ]


def _decoded(path: Path, snapshot: Any) -> Iterator[dict[str, Any]]:
    hints = hints_by_file(snapshot, [path])[path]
    for batch in open_binlog(path, hints=hints).row_batches():
        yield from batch.to_pylist()


def _image(event: dict[str, Any], side: str, names: list[str]) -> dict[str, Any]:
    present = event[f"{side}_columns"]
    values = event[f"{side}_values"]
    return {names[one]: values[one] for one in (range(len(names)) if present is None else present)}


def _key(columns: tuple[str, ...], image: dict[str, Any]) -> str | None:
    values = [image.get(name) for name in columns]
    return key_text(values) if values and None not in values else None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "filters",
    [
        {"tables": ["shop.orders"], "keys": ["1042"]},
        {"tables": ["order*"], "where": ["after.total > before.total"]},
        {"changed": ["status"], "threads": [10]},
        {"tables": ["orders"], "types": ["insert"], "since": "2026-11-17 09:00"},
        {"files": [FIRST_FILE], "from_pos": 30000, "to_pos": 40000},
        {"gtids": ["5ca1ab1e-0000-4000-8000-0000b1d1003e:20-30"]},
        {"tables": ["order_items"], "keys": ["order_id=1001"]},
    ],
)
def test_filtering_while_decoding_selects_the_same(filters: dict[str, Any]) -> None:
    given, snapshot = Filters.of(**filters), read_snapshot_dir(SHOP / "schema")
    whole = Log.of_files([SHOP / FIRST_FILE], Filters(), snapshot=snapshot)
    narrow = Log.of_files([SHOP / FIRST_FILE], given, snapshot=snapshot)
    expected = list(whole.rows(whole.select(given).query().order_by("start_pos", "row_ordinal")))
    found = list(narrow.rows(narrow.select(given).query().order_by("start_pos", "row_ordinal")))
    assert found == expected
    assert 0 < len(found) < 200


TABLE_MAP = 19


def renamed(data: bytes, old: bytes, new: bytes) -> bytes:
    """Return a file whose table maps have another name of the same length."""
    parts = events(data)
    return written(
        replace(part, data=part.data.replace(old, new)) if part.code == TABLE_MAP else part for part in parts
    )


@pytest.fixture(scope="module")
def named_by_their_log(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files whose names nothing tells but the log itself: another table, and another schema, in each of them."""
    data = WITH_NAMES[0].read_bytes()
    others = [data, renamed(data, b"things", b"thingz"), renamed(data, b"fixture", b"fixturf")]
    folder = tmp_path_factory.mktemp("named")
    files = [folder / f"bin.{number:06}" for number in (1, 2, 3)]
    for file, content in zip(files, others, strict=True):
        file.write_bytes(content)
    return files


@pytest.mark.parametrize(
    "filters",
    [
        {"tables": ["fixture.things", "fixture.thingz"]},
        {"tables": ["fixturf.*", "thingz"]},
        {"schemas": ["fixture", "fixturf"]},
        {"schemas": ["fixturf", "fixture"], "tables": ["things", "thingz"], "key_from": "0"},
        {"tables": ["fixture.things", "fixturf.things"], "keys": ["1"]},
        {"tables": ["fixture.thing?", "fixturf.things"], "where": ["id = 1"]},
    ],
)
def test_tables_that_come_later_in_the_files_hide_no_rows(
    named_by_their_log: list[Path], filters: dict[str, Any]
) -> None:
    given = Filters.of(**filters)
    every = Log.of_files(named_by_their_log, Filters())
    narrow = Log.of_files(named_by_their_log, given)
    expected = list(every.rows(every.select(given).query().order_by("change_id")))
    assert list(narrow.rows(narrow.select(given).query().order_by("change_id"))) == expected
    assert len(narrow.select(given).tables) > 1 and len(expected) > 3


@pytest.mark.parametrize("command", ["query", "transactions"])
def test_both_commands_count_the_rows_of_tables_that_come_later(
    named_by_their_log: list[Path], tmp_path: Path, command: str
) -> None:
    tables = ("--table", "fixture.things", "--table", "fixture.thingz")
    options = ("--by", "table", "--format", "csv", "--files", *named_by_their_log)
    result = binloom_here(command, *tables, *options, home=tmp_path)
    assert result.returncode == 0, result.stderr
    changes = {line.split(",")[2]: line.split(",")[3] for line in result.stdout.splitlines()[1:]}
    assert changes == {"things": "7", "thingz": "7"}


def test_a_table_that_never_comes_is_an_error(named_by_their_log: list[Path], tmp_path: Path) -> None:
    tables = ("--table", "fixture.things", "--table", "fixture.thing")
    result = binloom_here("query", *tables, "--files", *named_by_their_log, home=tmp_path)
    assert_sentence(result, 2, "There is no table 'fixture.thing'", "nearest names are fixture.thing")
    result = binloom_here("query", "--schema", "fixture,fixtura", "--files", *named_by_their_log, home=tmp_path)
    assert_sentence(result, 2, "There is no schema 'fixtura'", "nearest name is fixture")
    assert result.stdout == ""


def test_rows_without_names_are_reported() -> None:
    # Without the first file of the sample the log does not create the tables.
    log = Log.of_files([SHOP / "binlog.000002"], Filters())
    unnamed = log.quarantined(Filters())
    assert {one.reason for one in unnamed} == {"unknown_table"}
    assert sum(one.rows for one in unnamed) == len(list(_decoded(SHOP / "binlog.000002", None))) == 144
    assert rows(log, "select * from binloom.row_changes") == []


def test_a_table_whose_rows_have_no_names_says_what_to_do(tmp_path: Path) -> None:
    result = binloom_here("query", "--files", SHOP / "binlog.000002", "--table", "shop.orders", home=tmp_path)
    assert_sentence(result, 2, r"All selected row events are in quarantine: \d+ of shop.orders", "--snapshot-dir")
    named = binloom_here(
        "query", "--files", SHOP / "binlog.000002", "--snapshot-dir", SHOP / "schema", "--table", "orders"
    )
    assert named.returncode == 0 and "UPDATE shop.orders 1042" in named.stdout


def test_the_shell_may_expand_a_pattern(tmp_path: Path) -> None:
    files = sorted(SHOP.glob("binlog.*"))
    options = ["--table", "orders", "--key", "1042", "--by", "table", "--format", "csv"]
    result = binloom_here("query", *options, "--files", *files, home=tmp_path, env={"JAVA_HOME": "/nonexistent"})
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[1].startswith("files,shop,orders,6,1,5,0,1,")


@pytest.mark.parametrize("command", ["query", "transactions", "undo"])
def test_a_comparison_that_may_surprise_is_told(command: str, tmp_path: Path) -> None:
    options = ("--files", SHOP / FIRST_FILE, "--snapshot-dir", SHOP / "schema", "--table", "customers")
    result = binloom_here(command, *options, "--where", "email > 5", home=tmp_path)
    assert result.stderr.count("where email is varchar(120) in shop.customers, email > 5 compares texts") == 1


@pytest.mark.parametrize(
    ("options", "needles"),
    [
        (["--files", SHOP / FIRST_FILE, "--table", "shop.order"], ["no table 'shop.order'", "nearest .* shop.orders"]),
        (["--files", SHOP / "binlog.999999"], ["no such file|does not exist|is not there"]),
        (["--files", SHOP / "schema" / "columns.json"], ["is not a binlog"]),
        (["--files", SHOP / FIRST_FILE, SHOP / FIRST_FILE], [rf"{FIRST_FILE} is given twice\. Give it once\.$"]),
        (
            ["--files", SHOP / FIRST_FILE, SHOP.parent / "shop-mariadb" / "binlog.000002"],
            ["mysql with server_id 1 wrote", "mariadb with server_id", "Give the files of one server"],
        ),
        ([SHOP / FIRST_FILE], ["is not an option of this command", "with --files"]),
        (["--snapshot-dir", SHOP / "schema"], ["--snapshot-dir is for the tables of files", "Give it with --files"]),
        (["--files", SHOP / FIRST_FILE, "--source", "a", "--source", "b"], ["Files belong to one source"]),
    ],
)
def test_bad_files_are_explained(tmp_path: Path, options: list[object], needles: list[str]) -> None:
    result = binloom_here("query", *options, home=tmp_path)
    assert result.returncode in (2, 3)
    assert_sentence(result, result.returncode, *needles)


def test_a_cut_file_gives_the_rows_before_the_damage(tmp_path: Path) -> None:
    cut = tmp_path / FIRST_FILE
    cut.write_bytes((SHOP / FIRST_FILE).read_bytes()[:30000])
    result = binloom_here("query", "--files", cut, "--by", "table", "--format", "csv", home=tmp_path)
    assert_sentence(result, 3, r"rows from position \d+ on are missing", "Copy the file again")
    assert len(result.stdout.splitlines()) == 4


def test_an_option_with_another_source_is_refused() -> None:
    log = Log.of_files([SHOP / FIRST_FILE], Filters())
    with pytest.raises(UsageError, match="There is no source"):
        log.select(Filters.of(sources=["shop"]))


@pytest.mark.parametrize("mart", ["schema_changes", "table_versions"])
def test_a_landed_file_gives_the_facts_that_the_warehouse_has(home: Path, mart: str) -> None:
    decoded = whole([SHOP / FIRST_FILE])
    names = [row[0] for row in decoded.connection.execute(f"describe binloom.{mart}").fetchall()]
    query = f"select {', '.join(names)} from binloom.{mart} where source_id = '{LANDED}' order by all"
    expected = rows(Log.of_warehouse(home, dict.fromkeys((*VIEWS, *MARTS))), query)
    assert rows(decoded, query) == expected
    assert len(expected) >= 3


@pytest.mark.parametrize("ordinal", [0, 2])
def test_the_filter_of_keys_keeps_the_rows_with_one_of_its_texts(ordinal: int) -> None:
    batches = [batch for kind, batch in open_binlog(SHOP / FIRST_FILE).batches() if kind == "row_events"]
    for batch in [part for whole in batches for part in (whole, whole.slice(3), whole.slice(5, 20))]:
        found = batch.to_pylist()
        texts = {one[image][ordinal] for one in found for image in ("before_values", "after_values")} - {None}
        wanted = [*sorted(texts)[::3], "é"]
        for table_map in {one["table_map_id"] for one in found}:
            kept = [
                one
                for one in found
                if one["table_map_id"] != table_map
                or {one["before_values"][ordinal], one["after_values"][ordinal]} & {*wanted}
            ]
            assert rows_with_keys(batch, {table_map: [{ordinal: wanted}]}).to_pylist() == kept


def test_a_file_that_is_given_twice_is_one_file(tmp_path: Path) -> None:
    file, packed, archive = SHOP / FIRST_FILE, tmp_path / f"{FIRST_FILE}.gz", tmp_path / "logs.tar"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    with tarfile.open(archive, "w") as tar:
        tar.add(file, arcname=FIRST_FILE)
    for other in (packed, archive):
        result = binloom_here("query", "--files", file, other)
        assert_sentence(result, 2, r"are one file, given twice\. Give it once\.$")
        assert str(file) in result.stderr and str(other) in result.stderr
    # A file of another server, and one that went on, are other files.
    others = [SAMPLES / "shop-mariadb" / FIRST_FILE, tmp_path / FIRST_FILE]
    others[1].write_bytes(file.read_bytes()[:9000])
    for other in others:
        result = binloom_here("query", "--files", file, other)
        assert_sentence(result, 2, "have the same name", "Give the files of one server's log")


def whole(paths: list[Path]) -> Log:
    return Log.of_whole_files(paths, source_id=LANDED, snapshot=read_snapshot_dir(SHOP / "schema"))


def gaps(log: Log) -> tuple[str, ...]:
    """Return why the orders at the end of a log may be others."""
    return state_of(
        log.connection, find_table(log, "orders"), moment_of(log.connection, LANDED, None)
    ).gaps_in_knowledge


def test_the_files_of_the_sample_follow_one_another() -> None:
    log = whole(sorted(SHOP.glob("binlog.0*")))
    assert gaps(log) == ()
    assert log.goes_on_after == "binlog.000002"


def test_a_missing_file_makes_rows_uncertain(tmp_path: Path) -> None:
    later = tmp_path / "binlog.000003"
    later.write_bytes((SHOP / "binlog.000002").read_bytes())
    missing = "After missing files or transactions at binlog.000003:0, rows may be missing or have other values."
    assert missing in gaps(whole([SHOP / FIRST_FILE, later]))


def test_only_the_last_file_may_end_inside_a_transaction(tmp_path: Path) -> None:
    """A copy of a file that was in use lacks the rest of it, if there are later files."""
    copies = [tmp_path / f"binlog.00000{number}" for number in (2, 3)]
    for copy in copies:
        copy.write_bytes((SHOP / "binlog.000002").read_bytes())
    start = cut_inside_a_transaction(copies[0], is_in_use=True)
    missing = f"After a part that was not read at binlog.000002:{start}, rows may be missing or have other values."
    assert missing not in gaps(whole([SHOP / FIRST_FILE, copies[0]]))
    assert missing in gaps(whole([SHOP / FIRST_FILE, *copies]))


def test_an_undo_of_a_cut_file_is_refused(tmp_path: Path) -> None:
    cut = tmp_path / "binlog.000002"
    cut.write_bytes((SHOP / "binlog.000002").read_bytes()[:25000])
    options = ["--files", SHOP / FIRST_FILE, cut, "--snapshot-dir", SHOP / "schema", "--table", "orders"]
    refused = binloom_here("undo", *options, "--where", "after.status = 'paid'", home=tmp_path)
    assert_sentence(refused, 3, "changed unseen since: a part that was not read", "undo is refused")
    assert refused.stdout == ""


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        ("rollback", "a rolled-back transaction, whose changes remain in tables of an engine without transactions"),
        ("none", "a transaction whose end is not in the log"),
    ],
)
def test_a_transaction_that_did_not_commit_makes_rows_uncertain(outcome: str, reason: str) -> None:
    log = whole([SHOP / FIRST_FILE])
    orders = "from binloom.row_changes where table_name = 'orders'"
    ((transaction, first),) = log.connection.execute(
        f"select transaction_pos, min(start_pos) {orders} group by all order by all limit 1"
    ).fetchall()
    log.connection.execute(f"update resolved set outcome = '{outcome}' where start_pos = {transaction}")
    (gap,) = gaps(log)
    assert gap == f"After {reason} at {FIRST_FILE}:{first}, rows may be missing or have other values."
    log.connection.execute(f"update resolved set xa_xid = 'x' where start_pos = {transaction}")
    assert len(gaps(log)) == (outcome == "none")


@pytest.mark.parametrize(("events", "outcome"), [(2, "commit"), (5, "xa_prepare")])
def test_a_prepared_transaction_ends_with_one_that_only_ends_it(events: int, outcome: str) -> None:
    with duckdb.connect() as connection:
        add_tables(connection)
        connection.execute(
            "insert into decoded_transactions by name select 's' as source_id, 0 as epoch, 'b.000001' as binlog_file,"
            " 1 as file_sequence, 'x' as xa_xid, * from (values (4, 'xa_prepare', 5), (900, 'commit', $events))"
            " as transactions (start_pos, outcome, events)",
            {"events": events},
        )
        found = connection.execute("select outcome from binloom.transactions where start_pos = 4").fetchall()
    assert found == [(outcome,)]


def test_statements_that_change_rows_make_rows_uncertain() -> None:
    log = Log.of_whole_files([FIXTURES / "mariadb-mixed.binlog"])
    found = rows(log, "from binloom_quality.statement_format_changes")
    assert {row["verb"] for row in found} >= {"INSERT"}


def test_files_of_two_servers_are_refused() -> None:
    maria = PROJECT / "samples" / "shop-mariadb" / "binlog.000002"
    with pytest.raises(UsageError, match="server_id"):
        whole([SHOP / FIRST_FILE, maria])


def test_a_file_in_the_place_of_the_table_is_explained(tmp_path: Path) -> None:
    first, second = sorted(SHOP.glob("binlog.0*"))
    result = binloom_here("state", "--files", first, second, "orders", home=tmp_path)
    assert_sentence(result, 2, "binlog.000002 is a file, not a table", "before --files")


def test_an_undo_of_files_takes_definitions_from_the_log(tmp_path: Path) -> None:
    options = ["--files", *sorted(SHOP.glob("binlog.0*")), "--table", "orders", "--type", "DELETE"]
    result = binloom_here("undo", *options, home=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "-- definition of shop.orders: from CREATE TABLE at binlog.000001:" in result.stdout
    assert "if its table is older than the log" not in result.stderr


@pytest.mark.parametrize("has_snapshot", [False, True])
def test_an_undo_that_deletes_tells_that_a_log_alone_does_not_show_all_children(
    tmp_path: Path, has_snapshot: bool
) -> None:
    options = ["--files", *sorted(SHOP.glob("binlog.0*")), "--table", "order_items", "--type", "INSERT", "--rows-only"]
    options += ["--snapshot-dir", SHOP / "schema"] if has_snapshot else []
    result = binloom_here("undo", *options, "--skip-conflicts", home=tmp_path)
    assert ("if its table is older than the log" in result.stdout) is not has_snapshot


def test_an_undo_of_columns_that_no_table_has_is_refused(tmp_path: Path) -> None:
    options = ["--files", *sorted(SHOP.glob("binlog.0*")), "--snapshot-dir", SHOP / "schema", "--table", "orders"]
    refused = binloom_here("undo", *options, "--key", "1042", "--columns", "note,statuss", home=tmp_path)
    assert_sentence(refused, 2, "No statement can set a column 'statuss' of shop.customers", "nearest name is status")
    assert refused.stdout == ""


A = "5ca1ab1e-0000-4000-8000-0000b1d1003e"


@pytest.mark.parametrize(
    ("before", "gtids", "after", "expected"),
    [
        (f"{A}:1-5", [f"{A}:6", f"{A}:7"], f"{A}:1-7", True),
        (f"{A}:1-5", [f"{A}:7"], f"{A}:1-7", False),
        (f"{A}:1-5", [f"{A}:6", f"{A}:7"], f"{A}:1-6", False),
        ("", [f"{A}:1"], f"{A}:1", True),
        (f"{A}:1-5", [None], f"{A}:1-5", True),
        ("0-1-5", ["0-1-6", "0-1-7"], "0-1-7", True),
        ("0-1-5", ["0-1-6"], "0-1-7", False),
        ("0-1-5", ["0-1-6", "0-2-7"], "0-1-6,0-2-7", True),
        ("0-1-5", ["0-1-6", "0-2-7"], "0-1-6", False),
        # Domain 1 was deleted from the list.
        ("0-1-5,1-1-9", ["0-1-6"], "0-1-6", True),
        ("", [], "", True),
    ],
)
def test_gtids_show_whether_transactions_between_files_are_missing(
    before: str, gtids: list[str | None], after: str, expected: bool
) -> None:
    assert leads_to(before, gtids, after) is expected


def test_a_state_as_sql_has_a_statement_for_each_row(tmp_path: Path) -> None:
    options = ["--files", *sorted(SHOP.glob("binlog.0*")), "--as-of", "binlog.000001:40000"]
    script = tmp_path / "orders.sql"
    written = binloom_here(
        "state", "orders", *options, "--snapshot-dir", SHOP / "schema", "--format", "sql", "--output", script
    )
    listed = binloom_here("state", "orders", *options, "--snapshot-dir", SHOP / "schema", "--format", "json")
    assert written.returncode == 0, written.stderr
    statements = [line for line in script.read_text().splitlines() if line.startswith("INSERT ")]
    assert len(statements) == len(listed.stdout.splitlines()) > 20
    assert all(line.startswith("INSERT INTO `shop`.`orders` (`id`, `customer_id`, ") for line in statements)
    assert f"IF(@binloom_rows = {len(statements)}, 'COMMIT'" in script.read_text()
    without = binloom_here("state", "orders", *options, "--format", "sql", home=tmp_path)
    assert [line for line in without.stdout.splitlines() if line.startswith("INSERT ")] == statements
    assert "-- definition of the table: from CREATE TABLE at binlog.000001:" in without.stdout


@pytest.mark.parametrize(("name", "folds"), [("mysql-5.6", True), ("mariadb", True), ("mariadb", False)])
@pytest.mark.mysql56
@pytest.mark.mariadb
def test_names_are_those_of_row_events_where_the_server_folds_case(tmp_path: Path, name: str, folds: bool) -> None:
    with ALL_DISTRIBUTIONS[name].start(tmp_path / "server", ["--lower-case-table-names=1"] if folds else []) as server:
        server.execute("create database Shop", "create table Shop.Orders (Id int primary key, Note text, b text)")
        if not folds:
            # A table of its own, without a row in the log.
            server.execute("create database shop", "create table shop.Orders (id int primary key, b text, note text)")
            server.execute("create table shop.orders (id int primary key, note text, b text)")
        table = "Shop.orders" if folds else "shop.orders"
        server.execute(f"insert into {table} values (1, 'x', '')", f"update {table} set note = 'y'")
        log = Log.of_whole_files([server.flush()])
    found = log.connection.execute("select table_name, row_after from binloom.row_changes order by start_pos")
    named = ("Id", "Note", "b") if folds else ("id", "note", "b")
    assert found.fetchall() == [("orders", dict(zip(named, ("1", note, ""), strict=True))) for note in ("x", "y")]
    states = {one: find_table(log, one) for one in (("Shop.Orders", "SHOP.ORDERS") if folds else ())}
    for one in states.values():
        state = state_of(log.connection, one, moment_of(log.connection, one.source_id, None))
        assert ([row.values for row in state.rows()], state.is_complete) == ([{"Id": "1", "Note": "y", "b": ""}], True)
