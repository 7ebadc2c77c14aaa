"""Binlog files in an object store."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.binlog import open_binlog, scan_binlog
from ingest.binlog.byte_files import StoredFile, open_bytes
from ingest.errors import BinlogNotReadableError
from ingest.landing import IngestOptions, ingest
from ingest.sources.files.directory import find_binlogs
from ingest.sources.files.objects import objects
from tests.support.archives import compressed
from tests.support.command_line import assert_sentence, binloom
from tests.support.in_process import binloom_here
from tests.support.landing.stored import stored
from tests.support.object_store import BUCKET, KEY_ID, SECRET, Store, running_store
from tests.support.places import SAMPLES

pytestmark = pytest.mark.slow

SHOP = SAMPLES / "shop-mysql"
FILES = [SHOP / "binlog.000001", SHOP / "binlog.000002"]
QUERY = ("query", "--table", "shop.orders", "--format", "json", "--files")


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with running_store() as running:
        yield running


@pytest.fixture
def here(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The store, found by this process."""
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    return store


def only(address: str) -> StoredFile:
    (found,) = objects(address)
    assert isinstance(found, StoredFile)
    return found


def test_an_index_in_a_bucket(store: Store) -> None:
    for file in FILES:
        store.put(file, f"indexed/{file.name}")
    made = binloom("index", f"s3://{BUCKET}/indexed/", env=store.environment)
    assert (made.returncode, made.stderr, made.stdout.count("of index")) == (0, "", 2)
    pattern = f"s3://{BUCKET}/indexed/binlog.*"
    asked = binloom(*QUERY, pattern, env=store.environment)
    assert asked.stdout == binloom_here(*QUERY, *FILES).stdout
    store.fetched()
    never = binloom(*QUERY[:-1], "--since", "2099-01-01", "--files", pattern, env=store.environment)
    assert "read 0 bytes of 86.7 KB" in never.stderr
    assert 0 < store.fetched() < sum(file.stat().st_size for file in FILES) / 2


def test_commands_read_objects(store: Store) -> None:
    addresses = [store.put(file) for file in FILES]
    asked, plain_answer = binloom(*QUERY, *addresses, env=store.environment), binloom_here(*QUERY, *FILES)
    assert asked.returncode == 0
    assert (asked.stdout, asked.stderr) == (plain_answer.stdout, plain_answer.stderr)
    decoded = binloom("decode", *addresses, env=store.environment)
    assert decoded.stdout == binloom_here("decode", *FILES).stdout
    there = json.loads(binloom("inspect", addresses[0], "--format", "json", env=store.environment).stdout)
    plain = json.loads(binloom_here("inspect", FILES[0], "--format", "json").stdout)
    assert {**there, "file": None} == {**plain, "file": None}
    assert there["file"] == addresses[0]


def test_an_undo_from_objects(store: Store) -> None:
    options = ("--table", "shop.orders", "--snapshot-dir", SHOP / "schema", "--files")
    addresses = [store.put(file) for file in FILES]
    assert (
        binloom("undo", *options, *addresses, env=store.environment).stdout
        == binloom_here("undo", *options, *FILES).stdout
    )


def test_a_pattern_names_the_objects_of_a_folder(store: Store, tmp_path: Path) -> None:
    for number, suffix in enumerate((".gz", ".zst")):
        store.put(compressed(FILES[number], tmp_path, suffix), f"archive/{FILES[number].name}{suffix}")
    store.put(FILES[0], "archive/other.000009")
    result = binloom(*QUERY, f"s3://{BUCKET}/archive/binlog.*", env=store.environment)
    assert (result.returncode, result.stdout) == (0, binloom_here(*QUERY, *FILES).stdout)
    nothing = binloom(*QUERY, f"s3://{BUCKET}/archive/mysql-bin.*", env=store.environment)
    assert_sentence(nothing, 2, "s3://logs/archive/mysql-bin.*: no object fits")


def test_objects_are_landed_as_files(here: Store, tmp_path: Path) -> None:
    folder = f"s3://{BUCKET}/landed"
    here.put(FILES[0], "landed/binlog.000001")
    here.put(compressed(FILES[1], tmp_path, ".gz"), "landed/binlog.000002.gz")
    here.put(FILES[0], "landed/notes")
    ingest("shop", find_binlogs(SHOP), home=tmp_path / "plain")
    for processes in (1, 2):
        home = tmp_path / f"home{processes}"
        ingest("shop", find_binlogs(folder), IngestOptions(processes=processes), home=home)
        assert stored(home) == stored(tmp_path / "plain")
    arguments = ("ingest", "--source", "shop", "--binlog-dir", folder, "--files", "binlog.000001")
    assert "nothing new" in binloom(*arguments, home=tmp_path / "plain", env=here.environment).stdout
    here.fetched()
    assert "nothing new" in binloom(*arguments, home=tmp_path / "plain", env=here.environment).stdout
    # A landed file is known by its size and its first bytes.
    assert here.fetched() < 10_000
    nothing = binloom("ingest", "--source", "shop", "--binlog-dir", f"{folder}/x", "--all", env=here.environment)
    assert_sentence(nothing, 2, f"{folder}/x/: no object fits")


def test_only_the_ranges_that_are_read_are_fetched(here: Store, tmp_path: Path) -> None:
    large = tmp_path / "binlog.000001"
    large.write_bytes(FILES[0].read_bytes() + random.Random(1).randbytes(40 << 20))
    file = only(here.put(large, "large/binlog.000001"))
    here.fetched()
    log = open_binlog(file, end=FILES[0].stat().st_size)
    assert sum(batch.num_rows for batch in log.row_batches()) == 253
    assert here.fetched() < 4 << 20


def test_all_bytes_of_a_large_object_are_right(here: Store, tmp_path: Path) -> None:
    data = random.Random(2).randbytes((21 << 20) + 77)
    large = tmp_path / "large"
    large.write_bytes(data)
    with open_bytes(only(here.put(large, "large/any"))) as source:
        read = b"".join(source.read(1 << 20, at) for at in range(0, len(data), 1 << 20))
        assert read == data
        for at in random.Random(3).sample(range(len(data)), 20):
            assert source.read(1000, at) == data[at : at + 1000]


def test_an_object_that_changes_is_refused(here: Store, tmp_path: Path) -> None:
    file = only(here.put(FILES[0], "changing/binlog.000001"))
    scan_binlog(file)
    here.put(FILES[1], "changing/binlog.000001")
    with pytest.raises(BinlogNotReadableError, match=r"s3://logs/changing/binlog\.000001 changed while it was read"):
        scan_binlog(file)
    again = only(here.put(FILES[0], "changing/binlog.000001"))
    with open_bytes(again) as source:
        assert source.read(4, 0)
        here.put(FILES[1], "changing/binlog.000001")
        with pytest.raises(BinlogNotReadableError, match="changed while it was read"):
            source.read(1000, 5000)


def test_what_is_not_there_is_told(store: Store) -> None:
    for address in (f"s3://{BUCKET}/mysql/binlog.000099", "s3://nobucket/binlog.000001"):
        assert_sentence(binloom("inspect", address, env=store.environment), 2, f"{address}: no such object")
    assert_sentence(binloom("inspect", "ftp://host/binlog.000001"), 2, "ftp://host/binlog.000001 is not the address")


def test_wrong_credentials_are_told_and_never_printed(store: Store) -> None:
    address = store.put(FILES[0])
    store.refuses = True
    try:
        result = binloom("inspect", address, env=store.environment)
    finally:
        store.refuses = False
    assert_sentence(result, 3, f"{address} cannot be read: access denied", "AWS_PROFILE")
    with_secret = address.replace("s3://", f"s3://{KEY_ID}:{SECRET}@")
    for given in (address, with_secret):
        result = binloom("inspect", f"{given}9", env=store.environment)
        assert result.returncode == 2
        assert SECRET not in result.stdout + result.stderr and KEY_ID not in result.stdout + result.stderr


def test_a_store_that_cannot_be_reached_is_told(store: Store) -> None:
    nowhere = {**store.environment, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    assert_sentence(binloom("inspect", f"s3://{BUCKET}/x", env=nowhere), 3, "network connection", "AWS_ENDPOINT_URL")


def test_a_file_address_is_a_path() -> None:
    assert binloom_here("decode", FILES[0].as_uri()).stdout == binloom_here("decode", FILES[0]).stdout
