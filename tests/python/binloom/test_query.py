"""`binloom query` on marts that were built before: it needs no Java, and explains what it cannot find."""

import csv
import json
import re
import shutil
import struct
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from binloom.answers import lacks
from recover.questions.summaries import summary
from recover.selection.filters import By, Filters
from recover.sources.log import Log
from tests.servers import Server
from tests.support.command_line import assert_sentence
from tests.support.in_process import binloom_here
from tests.support.older_warehouse import unpack
from tests.support.places import FIXTURES, SAMPLES

SHOP = SAMPLES / "shop-mysql"
WITHOUT_JAVA = {"JAVA_HOME": "/nonexistent"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with marts: `landed` is the first file of a shop, `followed` a few boats on MariaDB."""
    return unpack(tmp_path_factory.mktemp("[odd] 'home*"))


def test_text_shows_changed_values_by_transaction(home: Path) -> None:
    result = binloom_here("query", "--table", "boats", "--key", "1", home=home, env=WITHOUT_JAVA)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "2026-11-22 18:36:15  followed/0/binlog.000001/858  gtid 0-1-4",
        "  statement: insert into yard.boats values (1, 'sail', 'Ida', 1.5), (2, 'motor', 'Åse', null)",
        "  INSERT yard.boats 1 at 1061",
        "      id    '1'",
        "      kind  'sail'",
        "      name  'Ida'",
        "      n     '1.50'",
        "",
        "2026-11-22 18:36:15  followed/0/binlog.000001/1150  gtid 0-1-5",
        "  statement: update yard.boats set n = n + 1",
        "  UPDATE yard.boats 1 at 1303",
        "      n  '1.50' → '2.50'",
        "",
        "2026-11-22 18:36:23  followed/0/binlog.000002/548  gtid 0-1-9",
        "  statement: update yard.boats set length = 7 where id = 1",
        "  UPDATE yard.boats 1 at 716",
        "      length  NULL → '7'",
    ]


@pytest.mark.mysql
def test_text_has_the_time_that_filters_compare_if_it_is_not_that_of_the_commit(
    mysql_server: Server, tmp_path: Path
) -> None:
    mysql_server.flush()
    mysql_server.execute("create database times", "create table times.t (id int primary key)")
    mysql_server.execute("set timestamp = 1700000000", "insert into times.t values (7)")
    log = mysql_server.flush()
    found = binloom_here("query", "--files", log, "--until", "2023-11-14 22:13:21", home=tmp_path)
    assert re.search(r"^  INSERT times\.t 7 at \d+, changed at 2023-11-14 22:13:20$", found.stdout, re.MULTILINE), found


def test_json_and_csv_have_all_columns_in_commit_order(home: Path) -> None:
    options = ("query", "--source", "landed", "--table", "shop.orders", "--where", "total > 500")
    rows = [json.loads(line) for line in binloom_here(*options, "--format", "json", home=home).stdout.splitlines()]
    places = [(row["file_sequence"], row["start_pos"], row["row_ordinal"]) for row in rows]
    assert places == sorted(places) and len(rows) > 10
    assert all(float((row["row_after"] or row["row_before"])["total"]) > 500 for row in rows)
    lines = list(
        csv.DictReader(binloom_here(*options, "--format", "csv", "--limit", "3", home=home).stdout.splitlines())
    )
    assert [line["change_id"] for line in lines] == [row["change_id"] for row in rows[:3]]
    chosen = [option for row in rows[2:4] for option in ("--change-id", row["change_id"])]
    found = binloom_here("query", *chosen, "--format", "json", home=home)
    assert [json.loads(line) for line in found.stdout.splitlines()] == rows[2:4]


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (
            "transaction",
            {"transaction_id": "followed/0/binlog.000001/858", "gtid": "0-1-4", "changes": 1}
            | {"inserts": 1, "changes_of_transaction": 2, "tables": ["yard.boats"], "outcome": "commit"},
        ),
        ("table", {"source_id": "followed", "table_name": "boats", "changes": 3, "updates": 2, "keys": 1}),
        ("hour", {"event_hour": "2026-11-22-18", "changes": 3, "transactions": 3}),
        ("thread", {"source_id": "followed", "server_id": 1, "thread_id": None, "changes": 3}),
    ],
)
def test_sums(home: Path, by: str, expected: dict[str, object]) -> None:
    result = binloom_here("query", "--table", "boats", "--key", "1", "--by", by, "--format", "json", home=home)
    row = json.loads(result.stdout.splitlines()[0])
    assert {name: row[name] for name in expected} == expected


def test_a_statement_selects_only_its_own_rows(home: Path) -> None:
    result = binloom_here("query", "--statement", "SET n = N + 1", "--format", "json", home=home)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(row["event_type"], row["pk_values"]) for row in rows] == [("UPDATE", "1")]


def test_text_is_cut_and_other_formats_are_not(home: Path) -> None:
    text = binloom_here("query", home=home)
    assert text.stdout.count(" at ") == 200
    assert_sentence(text, 0, "these are the first 200; --limit N prints more")
    everything = binloom_here("query", "--format", "json", home=home)
    assert len(everything.stdout.splitlines()) == 259 and everything.stderr == ""
    assert binloom_here("query", "--limit", "2", home=home).stdout.count(" at ") == 2


@pytest.mark.parametrize(
    ("options", "needles"),
    [
        (["--table", "boat"], ["There is no table 'boat'.", "nearest name is boats"]),
        (["--table", "boats", "--changed", "names"], ["no column 'names' in yard.boats", "The nearest name is name"]),
        (["--table", "boats", "--key", "x"], ["'x' is not a number, and column id is int", "Give a number for id"]),
        (
            ["--gtid", "0-1-99"],
            ["No transaction of the log has a GTID of 0-1-99", "followed has 0-1-1 to 0-1-11; landed has 5ca1ab1e-"],
        ),
        (["--source", "landed", "--gtid", "0-1-5"], ["No transaction of landed has a GTID of 0-1-5"]),
        (
            ["--file", "binlog.000001", "--from-pos", "900", "--to-pos", "900"],
            ["--from-pos 900 is not before --to-pos 900", "from the first position on"],
        ),
        (
            ["--transaction", "binlog.000001:900"],
            ["no transaction", "inside a transaction. Give --transaction followed/0/binlog.000001/858 or "],
        ),
        (
            ["--source", "followed", "--transaction", "binlog.000001:900"],
            ["no transaction", "inside a transaction. Give --transaction followed/0/binlog.000001/858."],
        ),
        (
            ["--file", "binlog.00001"],
            ["The file 'binlog.00001' is not in the log", "The nearest names are binlog.00000"],
        ),
        (
            ["--until", "2001-01-01"],
            ["no row changes before 2001-01-01 00:00:00", "The first transaction is at 2026-11-17"],
        ),
        (["--since", "2099-01-01"], ["no row changes from 2099-01-01 00:00:00 on", "the last at 2026-11-22 18:36:23"]),
        (["--source", "follow"], ["There is no source 'follow'", "The nearest name is followed"]),
    ],
)
def test_unknown_names_and_times_are_explained(home: Path, options: list[str], needles: list[str]) -> None:
    result = binloom_here("query", *options, home=home)
    assert_sentence(result, 2, *needles)
    assert result.stdout == ""


@pytest.mark.parametrize("command", ["query", "transactions", "undo", "redo"])
@pytest.mark.parametrize("option", ["--table", "--schema", "--source", "--key", "--where", "--statement"])
def test_an_empty_filter_does_not_select_everything(home: Path, command: str, option: str) -> None:
    result = binloom_here(command, option, " ", home=home)
    assert_sentence(result, 2, f"{option} is empty", "variable of the shell")
    assert result.stdout == ""


def test_a_list_without_a_name_does_not_select_everything(home: Path) -> None:
    assert_sentence(binloom_here("query", "--table", ", ", home=home), 2, "', ' contains no name")


def test_filters_that_fit_nothing_are_an_answer(home: Path) -> None:
    result = binloom_here("query", "--table", "boats", "--where", "n > 100", home=home)
    assert_sentence(result, 0, r"No row change fits all filters\. Without --where there are 6\.")
    assert result.stdout == ""
    # The other hours are looked at to say so.
    result = binloom_here("query", "--table", "boats", "--until", "2026-11-20", home=home)
    assert_sentence(result, 0, r"No row change fits all filters\. Without --until there are 6\.")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--thread", "99"), "No row change fits this filter: --thread 99."),
        (("--statement", "drop"), "The log contains no statements of row changes, so none fits --statement."),
        (
            ("--type", "delete", "--thread", "99"),
            "No row change fits all of these filters: --type DELETE, --thread 99.",
        ),
        (
            ("--since", "2026-11-17 00:00:00.25", "--thread", "99"),
            "No row change fits all of these filters: --since 2026-11-17 00:00:00.250000, --thread 99.",
        ),
        (
            ("--where", "note = 'PAID'"),
            "No row change fits this filter: --where note = 'PAID'. --where compares texts with their case.",
        ),
    ],
)
def test_the_filter_that_fits_nothing_is_named(options: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    shop = SAMPLES / "shop-mysql"
    files = ("--files", shop / "binlog.000001", "--snapshot-dir", shop / "schema")
    assert_sentence(binloom_here("query", *files, *options, home=tmp_path), 0, re.escape(sentence))


def test_the_logged_statement_stands_above_its_changes(tmp_path: Path) -> None:
    """A statement of two rows, and one in a transaction of several statements."""
    shown = binloom_here("query", "--files", FIXTURES / "mariadb-defaults.binlog", home=tmp_path).stdout
    printed = shown.splitlines()
    events = [line for line in printed if line.startswith(("  statement: ", "  INSERT", "  UPDATE", "  DELETE"))]
    assert events[0].startswith("  statement: insert into fixture.things values (1, 'one', 'Zürich'")
    assert len(events[0]) <= len("  statement: ") + 301
    texts = [line for line in events if line.startswith("  statement: ")]
    kinds = {(text.split()[1], change.split()[0].lower()) for text, change in pairwise(events) if text in texts}
    assert kinds >= {("insert", "insert"), ("update", "update"), ("delete", "delete")}
    assert all(one == other for one, other in kinds)
    # Rows of one statement have it once above them.
    assert len(texts) < len(events) - len(texts)
    without = binloom_here("query", "--files", FIXTURES / "mariadb-annotate-off.binlog", home=tmp_path).stdout
    assert "INSERT" in without and "statement:" not in without


def test_statements_are_the_same_in_any_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("query", "--files", FIXTURES / "mariadb-defaults.binlog", "--limit", "1000")
    whole = binloom_here(*options, home=tmp_path).stdout
    assert whole.count("\n  statement: ") > 3
    for rows in (1, 2, 3):
        monkeypatch.setattr("binloom.commands.query._TEXT_ROWS", rows)
        assert binloom_here(*options, home=tmp_path).stdout == whole


def test_a_thread_is_not_in_the_log_of_an_older_mariadb(home: Path) -> None:
    for source in (("--source", "followed"), ("--files", FIXTURES / "mariadb-metadata-full.binlog")):
        result = binloom_here("query", *source, "--thread", "9", home=home)
        assert_sentence(result, 0, "does not contain the thread of any row change", "MariaDB before 11.5")


def test_names_that_the_files_do_not_have_are_mistakes(home: Path) -> None:
    files = ("--files", *sorted((SAMPLES / "shop-mysql").glob("binlog.0*")))
    unknown = binloom_here("query", *files, "--file", "binlog.000009", home=home)
    assert_sentence(unknown, 2, "'binlog.000009' is not one of --files", "binlog.000001", "binlog.000002")
    for command in (("query", "--type", "delete"), ("state", "shop.orders")):
        unlanded = binloom_here(*command, *files, "--source", "nosuch", home=home)
        assert_sentence(unlanded, 2, "There is no source 'nosuch'")
    named = binloom_here(
        *("query", *files, "--source", "any", "--snapshot-dir", SAMPLES / "shop-mysql" / "schema"),
        *("--by", "table", "--format", "csv"),
        home=home,
    )
    assert named.returncode == 0 and "any,shop,orders" in named.stdout


@pytest.mark.parametrize(
    ("options", "hours"),
    [
        ({"since": "2026-11-17 09:00"}, {"2026-11-17-09", "2026-11-22-18"}),
        ({"until": "2026-11-17 09:00"}, {"2026-11-17-08"}),
        ({"since": "2026-11-17 08:59:59.5", "until": "2026-11-17 09:00:00.5"}, {"2026-11-17-08", "2026-11-17-09"}),
        # The columns are those of some file.
        ({"since": "2026-11-18", "until": "2026-11-19"}, {"2026-11-17-08"}),
    ],
)
def test_only_the_hours_of_the_filters_are_read(home: Path, options: dict[str, str], hours: set[str]) -> None:
    filters = Filters.of(**options)  # type: ignore[arg-type]
    whole, part = Log.of_warehouse(home), Log.of_warehouse(home, filters=filters)
    opened = part.connection.execute("select distinct event_hour from binloom.row_changes").fetchall()
    assert {hour for (hour,) in opened} == hours
    expected, found = (list(log.rows(summary(log.select(filters), By.CHANGE))) for log in (whole, part))
    assert found == expected


def test_partitions_are_needed_by_hour_source_and_file() -> None:
    filters = Filters.of(sources=["shop"], files=["binlog.000002"], since="2026-11-17 09:30", until="2026-11-17 11:00")
    needed = {
        "event_hour": ["2026-11-17-09", "2026-11-17-10"],
        "source_id": ["shop"],
        "binlog_file": ["binlog.000002"],
        "file_part": ["0", "7"],
    }
    others = {
        "event_hour": ["2026-11-17-08", "2026-11-17-11", "__HIVE_DEFAULT_PARTITION__"],
        "source_id": ["Shop"],
        "binlog_file": ["binlog.000003"],
    }
    for column, values in needed.items():
        assert all(filters.may_select_from(column, value) for value in values), column
    for column, values in others.items():
        assert not any(filters.may_select_from(column, value) for value in values), column


def test_a_home_without_marts_says_what_to_do(tmp_path: Path) -> None:
    for command in (("query",), ("sql", "select 1 from row_changes")):
        empty, nowhere = binloom_here(*command, home=tmp_path), binloom_here(*command, home=tmp_path / "nowhere")
        assert_sentence(empty, 2, "nothing was landed there yet", "`binloom ingest`", "--files")
        assert_sentence(nowhere, 2, f"There is no folder {tmp_path}/nowhere", "BINLOOM_HOME")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.slow
@pytest.mark.parametrize("is_landed", [False, True])
def test_an_answer_tells_of_a_gap_where_its_rows_may_be(is_landed: bool, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for name, copy in (("binlog.000001", "binlog.000001"), ("binlog.000002", "binlog.000004")):
        shutil.copy(SHOP / name, logs / copy)
    files = sorted(logs.iterdir())
    with_names: tuple[object, ...] = ("--files", *files, "--snapshot-dir", SHOP / "schema")
    if is_landed:
        with_names = ()
        binloom_here("snapshot", "--source", "files", "--from-dir", SHOP / "schema", home=tmp_path)
        binloom_here("ingest", "--source", "files", "--binlog-dir", logs, "--all", home=tmp_path)
    log = Log.of_whole_files(files)
    ((first,),) = log.connection.execute(
        "select arg_min(committed_at, start_pos) from binloom.transactions where binlog_file = 'binlog.000004'"
    ).fetchall()
    gap = "the log has a gap at binlog.000001: the files between it and binlog.000004 are not known."
    end = "the log goes on after binlog.000004"
    moment = "%Y-%m-%d %H:%M:%S.%f"
    transaction = ("--transaction", "binlog.000001:" + str(transaction_of(log)))
    for command in ("query", "transactions"):
        for options, has_gap, has_end in (
            ((), True, True),
            (("--since", f"{first:{moment}}"), True, True),
            (("--since", f"{first + timedelta(microseconds=1):{moment}}"), False, True),
            # A transaction may have committed long after its changes.
            (("--until", f"{first:{moment}}"), True, True),
            (("--file", "binlog.000001"), False, False),
            (transaction, False, False),
        ):
            result = binloom_here(command, *options, *with_names, home=tmp_path)
            assert result.returncode == 0, result.stderr
            assert (gap in result.stderr) is has_gap, (options, result.stderr)
            assert (end in result.stderr) is (has_end and not is_landed), (options, result.stderr)


def transaction_of(log: Log) -> int:
    """Return the position of a transaction of the first file with rows."""
    query = "select min(transaction_pos) from binloom.row_changes where binlog_file = 'binlog.000001'"
    ((position,),) = log.connection.execute(query).fetchall()
    return int(position)


@pytest.mark.parametrize(
    ("position", "since", "until", "is_told"),
    [
        (None, 15, None, True),
        (None, 16, None, False),
        (None, None, -10, True),
        (None, None, -25, False),
        # The next file begins with a transaction behind a gap within a file, and the one before ends with one before.
        (900, 15, None, True),
        (900, 16, None, False),
        (900, None, -19, True),
        (900, None, -24, False),
    ],
)
def test_a_gap_is_told_unless_its_neighbours_show_that_it_is_of_another_time(
    position: int | None, since: int | None, until: int | None, is_told: bool
) -> None:
    """Files end at 5 and 10 o'clock; the gap is in the second or after it, and the third begins at 15 o'clock."""

    def at(hour: int | None) -> datetime | None:
        return None if hour is None else datetime(2026, 1, 2, tzinfo=UTC) + timedelta(hours=hour)

    log = Log.of_files([SHOP / "binlog.000001"], Filters())
    connection = log.connection
    connection.execute("delete from decoded_transactions; delete from binloom_quality.file_breaks")
    for number, (first, last) in {7: (1, 5), 8: (6, 10), 9: (15, 20)}.items():
        for pos, hour in ((4, first), (2000, last)):
            connection.execute(
                "insert into decoded_transactions by name"
                " select 'files' as source_id, 0 as epoch, $file as binlog_file, $number as file_sequence,"
                " $pos as start_pos, $pos + 9 as end_pos, $at as committed_at",
                {"file": f"b.{number}", "number": number, "pos": pos, "at": at(hour)},
            )
    if position is None:
        connection.execute("insert into binloom_quality.file_breaks values ('files', 0, 'b.8', 0, 'b.9', 'no_end')")
    else:
        connection.execute("insert into binloom_quality.lost_events values ('files', 0, 'b.8', ?, ?, '')", [900, 950])
    notes = [*lacks.missing(log, Filters(since=at(since), until=at(until)))]
    assert any("gap at b.8" in note for note in notes) is is_told, notes


def test_many_gaps_are_told_in_a_moment() -> None:
    log = Log.of_files([SHOP / "binlog.000001"], Filters())
    log.connection.execute(
        "insert into binloom_quality.file_breaks"
        " select 'files', 0, 'b.' || range, 0, 'b.' || (range + 1), 'no_end' from range(5000)"
    )
    notes = [*lacks.missing(log, Filters(since=datetime(2026, 1, 1, tzinfo=UTC)))]
    assert any("4,995 more gaps" in note for note in notes)


def test_an_older_home_without_the_tables_of_gaps_is_asked_and_says_so(tmp_path: Path) -> None:
    home = unpack(tmp_path)
    shutil.rmtree(home / "warehouse" / "binloom_quality.db" / "lost_events")
    result = binloom_here("query", "--table", "boats", home=home, env=WITHOUT_JAVA)
    assert result.returncode == 0, result.stderr
    assert "gaps of the log are not known" in result.stderr and "INSERT" in result.stdout


@pytest.mark.parametrize("command", [("query",), ("transactions",), ("top",), ("undo",)], ids=" ".join)
def test_an_encrypted_file_is_to_be_read_from_its_server(command: tuple[str, ...]) -> None:
    """A new copy of it is encrypted as well; and nobody knows what it has."""
    file = FIXTURES / "encrypted" / "mariadb-10.5.binlog"
    result = binloom_here(*command, "--files", file)
    assert_sentence(
        result,
        2 if command == ("undo",) else 3,
        rf"{file.name} is encrypted by its server from position 296 on \(encrypt_binlog=ON\)\. Stream it from the"
        " server, which decrypts it: `mariadb-binlog --read-from-remote-server --raw`",
    )
    told = result.stdout + result.stderr
    assert "The log contains no row changes" not in told and "Copy the file" not in told
    assert command != ("query",) or "What could be read of the log contains no row changes." in told


@pytest.mark.parametrize("question", [("query", "--by", "transaction"), ("transactions", "--min-rows", "1")])
@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_transaction_counts_with_all_of_its_rows(question: tuple[str, ...], is_indexed: bool, tmp_path: Path) -> None:
    """Also with those of other tables, which the answer does not need otherwise."""
    files = [SHOP / name for name in ("binlog.000001", "binlog.000002")]
    index = ("--index-dir", tmp_path) if is_indexed else ()
    if is_indexed:
        assert binloom_here("index", "--to", tmp_path, *files).returncode == 0

    def counts(*filters: str) -> dict[str, int]:
        found = binloom_here(*question, *filters, "--format", "json", *index, "--files", *files)
        assert found.returncode == 0, found.stderr
        rows = map(json.loads, found.stdout.splitlines())
        return {row["transaction_id"]: row.get("changes_of_transaction", row.get("row_events")) for row in rows}

    every, some = counts(), counts("--table", "shop.orders")
    assert some == {name: every[name] for name in some} and len(some) < len(every)


def test_a_position_is_one_of_the_only_file() -> None:
    first, second = (SHOP / name for name in ("binlog.000001", "binlog.000002"))
    part = ("query", "--from-pos", "9000", "--to-pos", "11000", "--format", "json")
    short = binloom_here(*part, "--files", first)
    assert short.stdout and short.stdout == binloom_here(*part, "--file", first.name, "--files", first).stdout
    refused = binloom_here(*part, "--files", first, second)
    assert_sentence(refused, 2, "A position is an offset in one binlog file.", "or only that file with --files")


@pytest.mark.parametrize("command", [("query", "--table", "shop.t"), ("state", "shop.t"), ("history", "shop.t", "1")])
def test_a_table_may_be_in_the_part_of_a_log_that_cannot_be_read(command: tuple[str, ...]) -> None:
    result = binloom_here(*command, "--files", FIXTURES / "encrypted" / "mariadb-10.5.binlog")
    assert_sentence(result, 3, "is encrypted by its server from position 296 on")
    assert "There is no table 'shop.t' in what could be read of the log. Stream it from the server" in result.stderr
    assert "binloom ingest" not in result.stderr


def test_files_without_any_table_are_not_to_be_landed(tmp_path: Path) -> None:
    first = (SHOP / "binlog.000001").read_bytes()
    # The size of an event is at its byte 9, and the first event is behind the 4 bytes of the magic number.
    (size,) = struct.unpack_from("<I", first, 4 + 9)
    (tmp_path / "binlog.000001").write_bytes(first[: 4 + size])
    result = binloom_here("history", "shop.orders", "1", "--files", tmp_path / "binlog.000001", home=tmp_path)
    assert_sentence(result, 2, "There is no table 'shop.orders'. The files have no change of a table.")
    assert "ingest" not in result.stderr
