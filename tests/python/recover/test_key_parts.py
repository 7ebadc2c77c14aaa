"""The files that may have the rows of a key: no row is missed, and few files are read."""

import os
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recover.selection.filters import Filters
from recover.sources.home import marts, part_footers
from recover.sources.home.bloom import BLOCK_BYTES, HEADER_BYTES, hash_of, may_contain, place_of_block
from recover.sources.home.key_parts import key_parts
from recover.sources.home.marts import open_marts
from recover.sources.log import Log
from tests.support.older_warehouse import unpack

pytestmark = pytest.mark.slow

ROWS = [("binloom", "row_changes")]
INDEX = "cache/row_changes_footers.parquet"
FILES = 12
KEYS_OF_A_FILE = 400


def hashed(key: object) -> str:
    return sha256(str(key).encode()).hexdigest()


def write(
    home: Path, hour: int, keys: list[int], moved: dict[int, int], *, bloom: bool = True, old: bool = False
) -> None:
    """Write the changes of an hour, in two row groups; `old`: by a version that had a column less."""
    folder = home / "warehouse" / "binloom.db" / "row_changes" / f"event_hour=2026-10-01-{hour:02}" / "source_id=a [b"
    folder.mkdir(parents=True)
    columns = {
        "pk_hash": [hashed(key) for key in keys],
        "pk_values": [str(key) for key in keys],
        "pk_values_after": pa.array([str(moved[key]) if key in moved else None for key in keys], pa.string()),
    }
    if not old:
        columns["outcome"] = ["commit"] * len(keys)
    pq.write_table(
        pa.table(columns),
        folder / "part-00000.zstd.parquet",
        row_group_size=max(1, len(keys) // 2),
        use_dictionary=False,
        write_statistics=["pk_values_after"],
        bloom_filter_options={"pk_hash": {"ndv": len(keys), "fpp": 0.001}} if bloom else None,
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with an hour of an older version and one without bloom filters; keys 5 and 405 moved to 1205 and 9999."""
    home = tmp_path_factory.mktemp("[odd] 'home*")
    for hour in range(FILES):
        first = hour * KEYS_OF_A_FILE
        keys = list(range(first, first + KEYS_OF_A_FILE))
        moved = {0: {5: 1205}, 1: {405: 9999}}.get(hour, {})
        write(home, hour, keys, moved, bloom=hour != 7, old=hour == 2)
    return home


@pytest.fixture(scope="module", params=["few files", "many files", "known files"])
def rows(home: Path, request: pytest.FixtureRequest) -> Iterator[duckdb.DuckDBPyConnection]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "few files":
            few_are_many(patch)
        yield open_marts(home, ROWS)
        assert (home / INDEX).exists() is (request.param != "few files")


def few_are_many(patch: pytest.MonkeyPatch) -> None:
    """Keep what footers say as for a thousand files."""
    for module in (marts, part_footers):
        patch.setattr(module, "MANY_FILES", FILES - 4)


def test_a_block_tells_what_an_engine_reads_in_the_whole_filter(home: Path, rows: duckdb.DuckDBPyConnection) -> None:
    path = next((home / "warehouse").glob("*/*/*-00/*/part-*"))
    engine = duckdb.connect()
    pattern = "".join(f"[{sign}]" if sign in "*[" else sign for sign in str(path))
    starts = engine.execute(
        "select bloom_filter_offset from parquet_metadata(?) where path_in_schema = 'pk_hash' order by row_group_id",
        [pattern],
    ).fetchall()
    assert len(starts) == 2
    file = os.open(path, os.O_RDONLY)
    told = {True: 0, False: 0}
    for key in [*range(0, KEYS_OF_A_FILE, 9), *range(50_000, 50_200)]:
        number = hash_of(hashed(key).encode())
        probed = engine.execute(
            "select bloom_filter_excludes from parquet_bloom_probe(?, 'pk_hash', ?) order by row_group_id",
            [pattern, hashed(key)],
        ).fetchall()
        for (start,), (is_excluded,) in zip(starts, probed, strict=True):
            place = place_of_block(os.pread(file, HEADER_BYTES, start), number)
            assert place is not None
            found = may_contain(os.pread(file, BLOCK_BYTES, start + place), number)
            assert found is not is_excluded
            told[found] += 1
    os.close(file)
    assert told[True] >= 45 and told[False] > 300


@pytest.mark.parametrize("header", [b"", b"\x15", bytes.fromhex("158040") + b"\x1c\x2c" + bytes(20), bytes(32)])
def test_a_filter_of_another_kind_is_not_read(header: bytes) -> None:
    assert place_of_block(header, 1) is None


@pytest.mark.parametrize(
    ("keys", "old", "new"),
    [
        (["5"], 1, 0),
        (["1205"], 1, 1),
        (["9999"], 0, 1),
        (["2801"], 1, 0),
        (["4700", "850", "-1"], 2, 0),
        (["no such key"], 0, 0),
    ],
)
def test_rows_are_found_by_old_and_new_key_in_few_files(
    rows: duckdb.DuckDBPyConnection, keys: list[str], old: int, new: int
) -> None:
    parts = key_parts(rows, keys)
    hashes = ", ".join(f"'{hashed(key)}'" for key in keys)
    texts = ", ".join(f"'{key}'" for key in keys)
    for query, condition, count in (
        (parts.by_old_key, f"pk_hash in ({hashes})", old),
        (parts.by_new_key, f"pk_values_after in ({texts})", new),
    ):
        found = rows.execute(f"select * from ({query}) where {condition} order by pk_values").fetchall()
        assert len(found) == count
        whole = rows.execute(f"select * from binloom.row_changes where {condition} order by pk_values").fetchall()
        assert found == whole
    # Besides the files of the keys: one of each shape, the one without filters, and one by chance.
    assert parts.by_old_key.count(".parquet") <= old + 4
    assert parts.by_new_key.count(".parquet") <= 4


def test_a_look_up_in_files_of_spark_finds_what_the_whole_table_has(tmp_path: Path) -> None:
    log = Log.of_warehouse(unpack(tmp_path))
    keys = log.connection.execute(
        "select distinct schema_name || '.' || table_name, unnest([pk_values, pk_values_after]) as key"
        " from binloom.row_changes where pk_values is not null"
    ).fetchall()
    asked = 0
    for table, key in keys:
        if key is None:
            continue
        selection = log.select(Filters.of(tables=[table], keys=[key]))
        assert selection.sources
        found = sorted(row[0] for row in log.rows(selection.query("change_id")))
        whole = f"select change_id from binloom.row_changes where {selection.condition.sql('duckdb')}"
        assert found == sorted(row[0] for row in log.connection.execute(whole).fetchall())
        asked += len(found)
    assert asked > 10


def test_kept_footers_are_those_of_the_files_that_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few_are_many(monkeypatch)
    for hour in range(FILES):
        write(tmp_path, hour, [*range(10 * hour, 10 * hour + 10)], {})

    def hours_of(key: int) -> list[str]:
        parts = key_parts(rows := open_marts(tmp_path, ROWS), [str(key)])
        query = f"select event_hour from ({parts.by_old_key}) where pk_hash = '{hashed(key)}' order by 1"
        found = rows.execute(query).fetchall()
        (definition,) = rows.execute("select sql from duckdb_views() where view_name = 'row_changes'").fetchone() or ()
        # With files of one shape, nothing reads the footers of all files.
        assert ("union_by_name" in definition) is has_two_shapes
        return [hour[-2:] for (hour,) in found]

    has_two_shapes = False
    read: list[int] = []
    footers_query = part_footers.footers_query

    def counted(files: str) -> str:
        read.append(files.count("part-"))
        return footers_query(files)

    monkeypatch.setattr(part_footers, "footers_query", counted)
    assert (hours_of(35), hours_of(35), read) == (["03"], ["03"], [FILES])
    # Others replace a file, add one and delete one.
    folder = tmp_path / "warehouse" / "binloom.db" / "row_changes"
    shutil.rmtree(folder / "event_hour=2026-10-01-03")
    write(tmp_path, 3, [*range(900, 920)], {})
    write(tmp_path, FILES, [35, 36], {})
    shutil.rmtree(folder / "event_hour=2026-10-01-05")
    assert (hours_of(35), hours_of(905), hours_of(55), read[1:]) == (["12"], ["03"], [], [2])
    # A question that needs only some files leaves what is known of the others.
    write(tmp_path, FILES + 1, [77], {})
    open_marts(tmp_path, ROWS, needs=Filters.of(since="2026-10-01 02:00").may_select_from)
    assert (hours_of(77), read[2:]) == (["07", "13"], [1])
    for content in (b"", b"PAR1 is no index"):
        (tmp_path / INDEX).write_bytes(content)
        assert hours_of(35) == ["12"]
    assert read[3:] == [FILES + 1, FILES + 1]
    has_two_shapes = True
    write(tmp_path, 5, [35], {}, old=True)
    assert hours_of(35) == ["05", "12"]
