"""Every command that prints rows prints all of them: as many as a batch inside it holds, one fewer and one more.

The files are made by hand, so that the number of their rows and the values in them are known without the decoder.
"""

import csv
import io
import itertools
import json
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from binloom.answers import state_files
from binloom.commands.query import _TEXT_ROWS as QUERY_TEXT
from binloom.commands.sql import _TEXT_ROWS as SQL_TEXT
from ingest.binlog.buffers import INDEX_CAPACITY, ROW_CAPACITY
from recover.sources import engine
from recover.sources.engine import _ROWS_AT_ONCE as FETCHED
from recover.sources.log import Log
from recover.undo.print import inserts
from recover.undo.select import changes
from tests.support.binlog import forge
from tests.support.depth import at_depth
from tests.support.in_process import binloom_here
from tests.support.recover.written_marts import write_marts

pytestmark = pytest.mark.slow

# Where nothing but the batch matters, batches are as small as this, so that the tests are quick.
SMALL = 50
HOUR = 3600


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the batches of fetched rows, of Parquet, of INSERT statements and of undone changes small."""
    for module in (engine, state_files, inserts, changes):
        monkeypatch.setattr(module, "_ROWS_AT_ONCE", SMALL)


with_small_batches = pytest.mark.usefixtures("small_batches")


def around(*sizes: int) -> list[int]:
    """Return each size and the one above, in `make deep` also the one below it."""
    return sorted({one for size in sizes for one in range(size - at_depth(0, 1), size + 2)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sizes")


Made = Callable[[Path, int], Path]


def once(folder: Path, make: Made, size: int) -> Path:
    """Return the file that a function makes for a size; it is made only once."""
    place = folder / f"{make.__name__}-{size}"
    if not place.exists():
        place.mkdir()
        make(place, size)
    return place / "binlog.000001"


def table_of_one_column(maker: forge.FileMaker, table_id: int = 1, name: bytes = b"t") -> None:
    names = forge.field_of(4, b"\x02id") + forge.field_of(8, b"\0")
    maker.table_map([forge.LONG], b"", forge.signedness(False) + names, table_id, name)


def rows_of_one_table(folder: Path, size: int) -> Path:
    """One transaction inserts the ids from 1 on into s.t, 700 in each event."""
    maker = forge.FileMaker()
    maker.begin()
    table_of_one_column(maker)
    for first in range(1, size + 1, 700):
        ids = range(first, min(first + 700, size + 1))
        images = b"".join(b"\0" + struct.pack("<i", one) for one in ids)
        maker.rows(30, 1, images, ends_statement=ids.stop > size)
    maker.commit()
    maker.rotate()
    return maker.write(folder)


def transactions_of_many_tables(folder: Path, size: int) -> Path:
    """Each transaction inserts a row into a table of its own, on a thread of its own, in an hour of its own."""
    maker = forge.FileMaker()
    for number in range(1, size + 1):
        maker.timestamp += HOUR
        maker.begin(thread=number)
        table_of_one_column(maker, number, b"t%d" % number)
        maker.rows(30, 1, b"\0" + struct.pack("<i", number), table_id=number)
        maker.commit(number)
    maker.rotate()
    return maker.write(folder)


def versions_of_one_row(folder: Path, size: int) -> Path:
    """One row of s.t is inserted and then updated, until it has a number of versions; column n counts them."""
    maker = forge.FileMaker()
    names = forge.field_of(4, b"\x02id\x01n") + forge.field_of(8, b"\0")
    maker.begin()
    maker.table_map([forge.LONG, forge.LONG], b"", forge.signedness(False, False) + names)
    maker.rows(30, 2, b"\0" + struct.pack("<ii", 1, 1), ends_statement=False)
    images = [b"\0" + struct.pack("<ii", 1, number) for number in range(1, size + 1)]
    for before, after in itertools.pairwise(images):
        maker.rows(31, 2, before + after, ends_statement=False)
    maker.commit()
    maker.rotate()
    return maker.write(folder)


def schema_folder(folder: Path) -> Path:
    """A schema snapshot of s.t, for SQL."""
    place = folder / "schema"
    place.mkdir(exist_ok=True)
    of_table = {"TABLE_SCHEMA": "s", "TABLE_NAME": "t", "COLUMN_NAME": "id"}
    column = {"ORDINAL_POSITION": 1, "DATA_TYPE": "int", "COLUMN_TYPE": "int", "IS_NULLABLE": "NO"}
    column |= {"COLUMN_KEY": "PRI", "EXTRA": "", "GENERATION_EXPRESSION": ""}
    (place / "columns.json").write_text(json.dumps([{**of_table, **column}]))
    key = {"CONSTRAINT_NAME": "PRIMARY", "CONSTRAINT_SCHEMA": "s", "ORDINAL_POSITION": 1}
    (place / "key_column_usage.json").write_text(json.dumps([{**of_table, **key}]))
    return place


def printed(*words: object, home: Path | None = None, code: int = 0) -> str:
    """Return what a command prints; it must end well."""
    done = binloom_here(*words, home=home)
    assert done.returncode == code, done.stderr
    return done.stdout


def rows_in(text: str, format: str) -> list[dict[str, Any]]:
    if format == "json":
        return [json.loads(line) for line in text.splitlines()]
    return list(csv.DictReader(io.StringIO(text)))


def ids_of(rows: Sequence[dict[str, Any]]) -> list[int]:
    return [int(row["pk_values"]) for row in rows]


def warehouse_of(folder: Path, make: Made, size: int) -> Path:
    """Return a home with the marts of a file."""
    file = once(folder, make, size)
    home = file.parent / "home"
    return home if home.exists() else write_marts(Log.of_whole_files([file]), home)


def asked(folder: Path, make: Made, size: int, place: str) -> tuple[Path | None, tuple[object, ...]]:
    """Return the home and the options with which a command asks files or a warehouse."""
    if place == "files":
        return folder / "no-home", ("--files", once(folder, make, size))
    return warehouse_of(folder, make, size), ()


PLACES = pytest.mark.parametrize("place", ["files", "warehouse"])
FORMATS = pytest.mark.parametrize("format", ["json", "csv"])


@pytest.mark.parametrize("size", around(FETCHED))
def test_query_prints_every_change_of_files(folder: Path, size: int) -> None:
    home, options = asked(folder, rows_of_one_table, size, "files")
    assert ids_of(rows_in(printed("query", "--format", "json", *options, home=home), "json")) == [*range(1, size + 1)]


@with_small_batches
@PLACES
@FORMATS
@pytest.mark.parametrize("size", [*around(SMALL), 3 * SMALL + 1])
def test_query_prints_every_change(folder: Path, size: int, format: str, place: str) -> None:
    home, options = asked(folder, rows_of_one_table, size, place)
    rows = rows_in(printed("query", "--format", format, *options, home=home), format)
    assert ids_of(rows) == [*range(1, size + 1)]


@with_small_batches
@PLACES
@pytest.mark.parametrize("limit", [*around(SMALL), 3 * SMALL, 4 * SMALL])
def test_query_prints_as_many_changes_as_the_limit_allows(folder: Path, limit: int, place: str) -> None:
    size = 3 * SMALL + 1
    home, options = asked(folder, rows_of_one_table, size, place)
    text = printed("query", "--limit", limit, *options, home=home)
    assert text.count("  INSERT s.t ") == min(limit, size)
    rows = rows_in(printed("query", "--limit", limit, "--format", "json", *options, home=home), "json")
    assert ids_of(rows) == [*range(1, min(limit, size) + 1)]


@PLACES
@pytest.mark.parametrize("size", around(QUERY_TEXT))
def test_query_says_that_text_is_cut(folder: Path, size: int, place: str) -> None:
    home, options = asked(folder, rows_of_one_table, size, place)
    done = binloom_here("query", *options, home=home)
    assert done.stdout.count("  INSERT s.t ") == min(size, QUERY_TEXT)
    assert ("these are the first 200" in done.stderr) == (size > QUERY_TEXT)


UNITS = {"transaction": "transaction_id", "table": "table_name", "hour": "event_hour", "thread": "thread_id"}


@with_small_batches
@PLACES
@pytest.mark.parametrize("by", UNITS)
@pytest.mark.parametrize("size", around(SMALL))
def test_query_prints_every_sum(folder: Path, size: int, by: str, place: str) -> None:
    home, options = asked(folder, transactions_of_many_tables, size, place)
    for format in ("json", "csv"):
        rows = rows_in(printed("query", "--by", by, "--format", format, *options, home=home), format)
        assert len(rows) == len({row[UNITS[by]] for row in rows}) == size
        assert sum(int(row["changes"]) for row in rows) == size


@with_small_batches
@PLACES
@pytest.mark.parametrize("size", around(SMALL))
def test_transactions_prints_every_transaction_and_sum(folder: Path, size: int, place: str) -> None:
    home, options = asked(folder, transactions_of_many_tables, size, place)
    for words in (("--min-rows", 0), ("--by", "table"), ("--by", "hour"), ("--top", size)):
        rows = rows_in(printed("transactions", *words, "--format", "json", *options, home=home), "json")
        assert len(rows) == size, words


@with_small_batches
@PLACES
@pytest.mark.parametrize("size", around(SMALL))
def test_history_prints_every_version(folder: Path, size: int, place: str) -> None:
    home, options = asked(folder, versions_of_one_row, size, place)
    for format in ("json", "csv"):
        rows = rows_in(printed("history", "s.t", "1", "--format", format, *options, home=home), format)
        assert [int(row["version"]) for row in rows] == [*range(1, size + 1)]
    lines = printed("history", "s.t", "1", *options, home=home).splitlines()
    assert sum(" UPDATE " in line for line in lines) == size - 1


@with_small_batches
@PLACES
@pytest.mark.parametrize("size", around(SMALL, 2 * SMALL))
def test_state_prints_every_row(folder: Path, size: int, place: str) -> None:
    home, options = asked(folder, rows_of_one_table, size, place)
    for format in ("json", "csv"):
        rows = rows_in(printed("state", "s.t", "--format", format, *options, home=home), format)
        assert [int(row["id"]) for row in rows] == [*range(1, size + 1)]
    output = folder / "state.parquet"
    printed("state", "s.t", "--format", "parquet", "--output", output, *options, home=home)
    assert [*map(int, pq.read_table(output)["id"].to_pylist())] == [*range(1, size + 1)]


@with_small_batches
@pytest.mark.parametrize("size", around(SMALL))
def test_state_writes_every_row_as_sql(folder: Path, size: int) -> None:
    home, options = asked(folder, rows_of_one_table, size, "files")
    words = ("--format", "sql", "--snapshot-dir", schema_folder(folder))
    assert printed("state", "s.t", *words, *options, home=home).count("INSERT INTO `s`.`t`") == size


@with_small_batches
@pytest.mark.parametrize("how", [(), ("--by-transaction",)])
@pytest.mark.parametrize("size", around(SMALL))
def test_undo_prints_every_statement(folder: Path, size: int, how: tuple[str, ...]) -> None:
    home, options = asked(folder, rows_of_one_table, size, "files")
    text = printed("undo", *how, "--snapshot-dir", schema_folder(folder), *options, home=home)
    assert text.count("DELETE FROM `s`.`t`") == size


@pytest.mark.parametrize("size", around(ROW_CAPACITY))
def test_decode_prints_every_change(folder: Path, size: int) -> None:
    file = once(folder, rows_of_one_table, size)
    for format in ("json", "csv"):
        rows = rows_in(printed("decode", "--format", format, file), format)
        found = [json.loads(row["after"]) if format == "csv" else row["after"] for row in rows]
        assert found == [[str(one)] for one in range(1, size + 1)]


def test_decode_prints_every_change_as_text(folder: Path) -> None:
    text = printed("decode", "--format", "text", once(folder, rows_of_one_table, ROW_CAPACITY + 1))
    assert text.count(" INSERT s.t ") == ROW_CAPACITY + 1


@pytest.mark.parametrize("limit", [None, *around(INDEX_CAPACITY)])
def test_inspect_lists_every_event(folder: Path, limit: int | None) -> None:
    # Beside an event for each version: a format description, BEGIN, TABLE_MAP, XID and ROTATE.
    file, events = once(folder, versions_of_one_row, INDEX_CAPACITY), INDEX_CAPACITY + 5
    words = () if limit is None else ("--limit", limit)
    for format in ("json", "csv"):
        rows = rows_in(printed("inspect", "--events", *words, "--format", format, file), format)
        assert len(rows) == (events if limit is None else min(limit, events))


@with_small_batches
@pytest.mark.parametrize("size", around(SMALL))
def test_sql_prints_every_row(folder: Path, size: int) -> None:
    home, _ = asked(folder, rows_of_one_table, size, "warehouse")
    query = "select pk_values from row_changes order by cast(pk_values as int)"
    for format in ("json", "csv"):
        assert ids_of(rows_in(printed("sql", query, "--format", format, home=home), format)) == [*range(1, size + 1)]


@pytest.mark.parametrize("size", around(SQL_TEXT))
def test_sql_says_that_text_is_cut(folder: Path, size: int) -> None:
    home, _ = asked(folder, rows_of_one_table, size, "warehouse")
    done = binloom_here("sql", "select pk_values from row_changes", home=home)
    assert len(done.stdout.splitlines()) == 2 + min(size, SQL_TEXT)
    assert ("these are the first 1000 rows" in done.stderr) == (size > SQL_TEXT)
