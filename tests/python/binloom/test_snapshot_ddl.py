"""`binloom snapshot --from-ddl`: its output, and the landed snapshot."""

from pathlib import Path

from ingest.warehouse.files import read_rows
from ingest.warehouse.tables import SCHEMA_COLUMNS, SCHEMA_SNAPSHOTS
from tests.support.in_process import binloom_here

STATEMENTS = "create table t (id int primary key, word varchar(9) character set latin1);\n"


def test_a_file_of_ddl_is_landed_once(tmp_path: Path) -> None:
    path, home = tmp_path / "shop.sql", tmp_path / "home"
    path.write_text(STATEMENTS)
    options = ["--from-ddl", path, "--schema", "shop", "--at-file", "binlog.000003", "--at-pos", 157]
    result = binloom_here("snapshot", "--source", "shop", *options, home=home)
    assert result.returncode == 0, result.stderr
    assert result.stdout == (
        "shop: landed a schema snapshot of 1 table with 2 columns and 0 foreign key columns,"
        " true at binlog.000003:157\n"
    )
    assert "already landed" in binloom_here("snapshot", "--source", "shop", *options, home=home).stdout
    (head,) = read_rows(SCHEMA_SNAPSHOTS, home)
    assert (head["origin"], head["binlog_file"], head["binlog_pos"]) == ("ddl", "binlog.000003", 157)
    columns = sorted(read_rows(SCHEMA_COLUMNS, home), key=lambda row: row["ordinal_position"])
    assert [(row["column_name"], row["character_set"], row["primary_key_ordinal"]) for row in columns] == [
        ("id", None, 1),
        ("word", "latin1", None),
    ]


def test_a_statement_that_is_not_understood_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "shop.sql"
    path.write_text(STATEMENTS + "\nalter table t frobnicate;\n")
    result = binloom_here(
        "snapshot", "--source", "shop", "--from-ddl", path, "--schema", "shop", home=tmp_path / "home"
    )
    assert result.returncode == 2
    assert f"{path}, line 3: ALTER TABLE is not understood" in result.stderr.replace("\n", " ")
