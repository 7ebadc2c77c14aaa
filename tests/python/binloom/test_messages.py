"""Messages and exit codes: they name what was found, and are sentences of English."""

import json
import os
import struct
import subprocess
from pathlib import Path

import pytest

from ingest.words import counted, sentence, subject
from tests.support.binlog import forge
from tests.support.command_line import COMMAND, assert_sentence
from tests.support.in_process import binloom_here
from tests.support.places import PROJECT, SAMPLES

SHOP = SAMPLES / "shop-mysql"
FILE = SHOP / "binlog.000001"


def file_with_an_unknown_event(folder: Path) -> Path:
    """Write a file with a row, and with an event of a type that nobody has."""
    maker = forge.FileMaker()
    maker.event(150, b"???")
    maker.begin()
    maker.table_map(
        [forge.LONG], b"", forge.signedness(False) + forge.field_of(4, b"\x02id") + forge.field_of(8, b"\0")
    )
    maker.rows(30, 1, b"\0" + struct.pack("<i", -5))
    maker.commit()
    maker.rotate()
    return maker.write(folder)


def test_decode_ends_with_3_if_an_event_could_not_be_decoded(tmp_path: Path) -> None:
    result = binloom_here("decode", file_with_an_unknown_event(tmp_path))
    assert result.returncode == 3 and '"after":["-5"]' in result.stdout
    assert "One event or value could not be decoded" in result.stderr


def test_undo_whose_output_nobody_reads_ends_like_any_filter(tmp_path: Path) -> None:
    """It has files to delete, so it does not end by the signal itself. More than the pipe holds is printed."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    words = ["undo", "--files", str(FILE), "--snapshot-dir", str(SHOP / "schema"), "--table", "shop.orders"]
    try:
        process = subprocess.run(
            [*COMMAND, *words, "--type", "insert", "--skip-conflicts"],
            stdout=write_end,
            stderr=subprocess.PIPE,
            text=True,
            cwd=PROJECT,
            env={**os.environ, "TMPDIR": str(tmp_path), "BINLOOM_HOME": str(tmp_path / "home")},
        )
    finally:
        os.close(write_end)
    assert process.returncode == 141, process.stderr
    assert "Broken pipe" not in process.stderr and "Traceback" not in process.stderr
    assert not [*tmp_path.glob("binloom-undo-*")]


@pytest.mark.parametrize("words", [("-5",), ("-5", "--format", "json"), ("--format", "json", "-5"), ("--", "-5")])
def test_a_negative_number_is_a_key(tmp_path: Path, words: tuple[str, ...]) -> None:
    files = ("--files", file_with_an_unknown_event(tmp_path))
    order = (*words[:-2], *files, *words[-2:]) if "--" in words else (*words, *files)
    result = binloom_here("history", "s.t", *order, home=tmp_path / "home")
    assert result.returncode == 0, result.stderr
    assert "INSERT" in result.stdout and "-5" in result.stdout


def test_a_mistyped_option_of_history_is_still_an_error() -> None:
    assert_sentence(binloom_here("history", "s.t", "5", "--forma", "json"), 2, "no such option: --forma")


@pytest.mark.parametrize("words", [("query", "--by", "table", "--files"), ("decode",), ("inspect",)])
def test_the_index_of_the_files_is_passed_over(tmp_path: Path, words: tuple[str, ...]) -> None:
    binlog = file_with_an_unknown_event(tmp_path)
    index, state = tmp_path / "binlog.index", tmp_path / "binlog.state"
    index.write_text("./binlog.000001\n")
    state.write_text("0-1-7\n")
    result = binloom_here(*words, binlog, index, state, home=tmp_path / "home")
    alone = binloom_here(*words, binlog, home=tmp_path / "home")
    assert (result.returncode, result.stdout) == (alone.returncode, alone.stdout)
    assert result.stderr.count("is skipped: it is not a binlog") == 2 and str(index) in result.stderr
    # Both are empty where a server never wrote a binlog.
    for content in ("./binlog.000001\n", ""):
        index.write_text(content)
        assert_sentence(binloom_here(*words, index, home=tmp_path / "home"), 2, "the binlog files in the same folder")


def test_a_binlog_may_have_the_name_of_an_index(tmp_path: Path) -> None:
    file = file_with_an_unknown_event(tmp_path).rename(tmp_path / "copied.index")
    assert '"after":["-5"]' in binloom_here("decode", file).stdout


def test_a_home_without_data_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "hmoe"
    assert f"There is no folder {missing} (BINLOOM_HOME)" in binloom_here("status", home=missing).stdout
    missing.mkdir()
    assert f"Nothing is landed in {missing} (BINLOOM_HOME)" in binloom_here("status", home=missing).stdout
    asked = binloom_here("status", "--source", "shop", home=missing)
    assert f"Nothing is landed in {missing} (BINLOOM_HOME)" in asked.stderr


def test_doctor_tells_that_the_parent_of_a_home_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Root may write everywhere.
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path and may(path, mode))
    result = binloom_here("doctor", home=tmp_path / "one" / "home")
    assert result.returncode == 1 and f"this user cannot create it in {tmp_path}. Set BINLOOM_HOME" in result.stdout


def test_a_snapshot_that_was_given_is_not_asked_for(tmp_path: Path) -> None:
    schema = tmp_path / "schema"
    schema.mkdir()
    column = {"TABLE_SCHEMA": "other", "TABLE_NAME": "t", "COLUMN_NAME": "id", "ORDINAL_POSITION": 1}
    column |= {"DATA_TYPE": "int", "COLUMN_TYPE": "int", "COLUMN_KEY": "", "IS_NULLABLE": "NO"}
    (schema / "columns.json").write_text(json.dumps([column]))
    (schema / "key_column_usage.json").write_text("[]")
    # Without the first file of the sample the log does not create the tables.
    words = ("query", "--table", "shop.orders", "--files", SHOP / "binlog.000002")
    without = binloom_here(*words, home=tmp_path / "home")
    assert_sentence(
        without, 2, "in quarantine", "--ddl FILE, --snapshot-dir DIR", "--schema-from HOST", "--against HOST"
    )
    wrong = binloom_here(*words, "--snapshot-dir", schema, home=tmp_path / "home")
    assert_sentence(wrong, 2, "in quarantine", "The definitions that were given do not have these tables")


def rows_without_character_sets(folder: Path, tables: int, transactions: int) -> Path:
    """Write a log without the CREATE DATABASE, so that nothing tells the character set of its tables."""
    maker = forge.FileMaker()
    for table in range(tables):
        ddl = b"create table t%d (id int primary key, v varchar(10))" % table
        maker.event(2, struct.pack("<IIBHH", 7, 0, 1, 0, 0) + b"s\0" + ddl)
        for number in range(transactions):
            maker.begin()
            maker.table_map([forge.LONG, forge.VARCHAR], struct.pack("<H", 40), b"", table + 1, b"t%d" % table)
            maker.rows(30, 2, b"\0" + struct.pack("<i", number) + b"\x02ab", table_id=table + 1)
            maker.commit()
    maker.rotate()
    return maker.write(folder)


def test_one_missing_definition_is_not_told_for_each_table_and_transaction(tmp_path: Path) -> None:
    file = rows_without_character_sets(tmp_path, tables=9, transactions=7)
    query = binloom_here("query", "--files", file, home=tmp_path / "home")
    assert_sentence(query, 2, "are in quarantine: 7 of s.t0 .*, 28 of 4 more tables")
    state = binloom_here("state", "s.t3", "--files", file, home=tmp_path / "home")
    (line,) = [line for line in state.stderr.splitlines() if "in quarantine" in line]
    assert "and at 6 later places, rows may be missing" in line


def test_words_agree_with_their_numbers() -> None:
    assert (counted(1, "row change"), counted(2000, "row change")) == ("1 row change", "2,000 row changes")
    assert (subject(1, "row", "has", "have"), subject(0, "row", "has", "have")) == ("1 row has", "0 rows have")
    assert (sentence("by hand"), sentence("by hand.")) == ("by hand.", "by hand.")
