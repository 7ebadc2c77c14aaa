"""`binloom sql` on marts that were built before: it needs no Java, and refuses all that it cannot answer rightly."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot
from sqlglot import exp

from ingest.warehouse.files import partition_folder
from recover.questions.sql import FUNCTIONS, QuestionError, ask
from recover.sources.home.kept_files import UnfinishedMartError
from recover.sources.home.marts import NoMartError
from tests.support.command_line import assert_sentence
from tests.support.in_process import binloom_here
from tests.support.older_warehouse import unpack
from tests.support.recover.questions import QUESTIONS, documented_questions

WITHOUT_JAVA = {"JAVA_HOME": "/nonexistent"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with marts."""
    return unpack(tmp_path_factory.mktemp("[odd] 'home*"))


def test_rows_are_printed_in_each_format(home: Path) -> None:
    query = """select event_type, row_before['n'] as before, row_after from row_changes
    where table_name = 'boats' and pk_values = '1' order by file_sequence, start_pos limit 2"""
    result = binloom_here("sql", query, "--format", "json", home=home, env=WITHOUT_JAVA)
    assert result.returncode == 0, result.stderr
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {
            "event_type": "INSERT",
            "before": None,
            "row_after": {"id": "1", "kind": "sail", "name": "Ida", "n": "1.50"},
        },
        {
            "event_type": "UPDATE",
            "before": "1.50",
            "row_after": {"id": "1", "kind": "sail", "name": "Ida", "n": "2.50"},
        },
    ]
    table = binloom_here("sql", query, home=home, env=WITHOUT_JAVA)
    assert table.stdout.splitlines()[0].split() == ["event", "type", "before", "row", "after"]
    assert binloom_here("sql", query, "--format", "csv", home=home).stdout.startswith(
        "event_type,before,row_after\nINSERT,,"
    )


def test_a_query_may_come_from_stdin_and_many_rows_are_cut_in_text_only(home: Path) -> None:
    many = "select a.change_id from row_changes as a cross join row_changes as b"
    text = binloom_here("sql", many, home=home)
    assert len(text.stdout.splitlines()) == 2 + 1000
    assert_sentence(text, 0, "these are the first 1000 rows")
    assert len(binloom_here("sql", many, "--format", "csv", home=home).stdout.splitlines()) == 1 + len(
        list(ask(many, home).rows)
    )


@pytest.mark.parametrize(
    ("query", "needle"),
    [
        ("drop table row_changes", "answers one query, and changes nothing"),
        ("copy (select 1) to '/tmp/x'", "answers one query"),
        ("select 1; select 2", "answers one query"),
        ("selec 1", "cannot be read"),
        ("select exists(changed_columns, x -> x = 'n') from row_changes", "does not support the function exists"),
        ("select from_json(pk_values, 'x int') from row_changes", "does not support the function"),
        ("select own_function(pk_values) from row_changes", "does not support the function own_function"),
        ("select * from read_csv('/etc/passwd')", "does not support the function read_csv"),
        ("select * from parquet.`/etc/passwd`", "There is no mart parquet./etc/passwd"),
        ("select pk_value from row_changes", "There are the columns pk_values, pk_values_after"),
        ("select pk_values + 1 from row_changes", "cannot be answered"),
        ("select * from row_change", "There are binloom.row_changes"),
        ("describe row_change", "There are binloom.row_changes"),
        ("select * from nothing_like_it", "`binloom sql 'show tables'` lists all of them"),
        ("select * from binlog_raw.segments", "There is no mart binlog_raw.segments"),
        ("select * from binloom.`../binlog_raw.db/segments`", "There is no mart"),
    ],
)
def test_what_it_cannot_answer_is_refused(home: Path, query: str, needle: str) -> None:
    result = binloom_here("sql", query, home=home)
    assert_sentence(result, 2, needle)
    assert result.stdout == ""


def test_a_home_without_marts_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NoMartError, match=r"nothing was landed there yet\. Land binlog files with `binloom ingest`"):
        ask("select * from row_changes", tmp_path)


def own_table(home: Path, schema: str, name: str, rows: Mapping[str, Sequence[object]], part: str = "") -> None:
    """Write a table, as a dbt project of a person does."""
    folder = home / "warehouse" / f"{schema}.db" / name
    (folder / part).mkdir(parents=True)
    pq.write_table(pa.table(dict(rows)), folder / part / "part-0.parquet")
    (folder / "_SUCCESS").touch()


def test_every_table_of_the_warehouse_can_be_asked(tmp_path: Path) -> None:
    own_table(tmp_path, "binloom_shop", "cancelled_orders", {"id": [1, 2], "note": ["", None]})
    own_table(tmp_path, "binloom", "shop__orders__shop_mysql", {"id": [7]})
    own_table(tmp_path, "binloom_intermediate", "int_landed", {"id": [7]})
    own_table(tmp_path, "binlog_raw", "row_events", {"id": [7]})
    asked = "select one.note from binloom_shop.cancelled_orders as one order by id"
    assert [*ask(asked, tmp_path).rows] == [("",), (None,)]
    assert [*ask("select id from shop__orders__shop_mysql", tmp_path).rows] == [(7,)]
    listed = [
        ("binloom", "shop__orders__shop_mysql"),
        ("binloom_intermediate", "int_landed"),
        ("binloom_shop", "cancelled_orders"),
    ]
    assert [*ask("show tables", tmp_path).rows] == listed
    assert [*ask("SHOW TABLES in `binloom_shop`;", tmp_path).rows] == listed[2:]
    assert [*ask("show tables like '%orders%'", tmp_path).rows] == [listed[0], listed[2]]
    described = ask("describe table binloom_shop.cancelled_orders", tmp_path)
    assert (described.columns, [*described.rows]) == (
        ["column_name", "data_type"],
        [("id", "bigint"), ("note", "string")],
    )


def test_only_row_changes_has_hidden_columns(tmp_path: Path) -> None:
    rows = {"digest_before": [1], "digest_after": [2], "n": [3]}
    for schema, name in (("own", "hashes"), ("binloom", "row_changes")):
        own_table(tmp_path, schema, name, rows, "part=a")
    assert ask("select * from own.hashes", tmp_path).columns == [*rows, "part"]
    assert ask("select * from row_changes", tmp_path).columns == ["n", "part"]


def test_describe_has_the_types_of_spark(home: Path) -> None:
    types = dict(ask("desc row_changes", home).rows)
    assert types["row_before"] == "map<string,string>" and types["changed_columns"] == "array<string>"
    assert types["event_timestamp"] == "timestamp" and types["epoch"] == "int"


def test_csv_tells_null_from_an_empty_text(tmp_path: Path) -> None:
    own_table(tmp_path, "binloom", "t", {"a": ["", None, "x"], "b, c": [1, None, 2]})
    csv = binloom_here("sql", "select * from t", "--format", "csv", home=tmp_path)
    assert csv.stdout == 'a,"b, c"\n"",1\n,\nx,2\n'


def test_a_value_that_cannot_be_read_in_a_late_row_is_an_error_of_the_query(tmp_path: Path) -> None:
    own_table(tmp_path, "binloom", "t", {"a": ["1"] * 200_000 + ["x"]})
    result = binloom_here("sql", "select a + 1 from t", "--format", "csv", home=tmp_path)
    assert_sentence(result, 2, "The query cannot be answered")


@pytest.mark.parametrize("trace", ["_temporary", ".spark-staging-1/event_hour=2026-11-17-08"])
def test_a_mart_that_is_being_written_is_not_read(home: Path, trace: str) -> None:
    folder = home / "warehouse" / "binloom.db" / "row_changes" / trace
    folder.mkdir(parents=True)
    try:
        with pytest.raises(UnfinishedMartError, match=r"last build of binloom.row_changes has not ended"):
            ask("select count(*) from row_changes", home)
    finally:
        shutil.rmtree(folder.parent if folder.parent.name.startswith(".") else folder)


def test_a_mart_whose_writing_was_killed_is_not_read(home: Path) -> None:
    mark = home / "warehouse" / "binloom.db" / "binlog_files" / "_SUCCESS"
    mark.unlink()
    try:
        with pytest.raises(UnfinishedMartError):
            ask("select count(*) from binlog_files", home)
    finally:
        mark.touch()


def test_names_in_folders_are_read_as_they_are(tmp_path: Path) -> None:
    names = ["a:b c/ü%=x'\"", "100%", "a+b", "x\ny", "123", "%41"]
    for name in names:
        steps = {"source_id": name, "epoch": 7, "binlog_file": "b.000001"}
        folder = tmp_path / "warehouse" / "binloom.db" / "transactions" / partition_folder(steps)
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"start_pos": [4]}), folder / "part-0.parquet")
    rows = ask("select source_id, epoch, start_pos from transactions", tmp_path).rows
    assert sorted(rows) == sorted((name, 7, 4) for name in names)


def test_each_accepted_function_is_in_a_query_that_spark_answers_too() -> None:
    used = {
        type(function).__name__
        for question in [*QUESTIONS, *documented_questions()]
        for function in sqlglot.parse_one(question, read="spark").find_all(exp.Func)
    }
    assert used - {"Exists"} == FUNCTIONS


def test_an_error_is_one_of_binlooms_own(home: Path) -> None:
    with pytest.raises(QuestionError):
        ask("select cast('x' as int) + unknown from row_changes", home)
