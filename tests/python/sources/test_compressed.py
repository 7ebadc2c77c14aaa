"""Compressed binlog files: every command reads them as it reads the files inside."""

import gzip
import json
import lzma
from pathlib import Path

import pytest

from ingest.binlog import scan_binlog
from ingest.binlog.byte_files import StoredFile
from ingest.landing import IngestOptions, ingest
from ingest.sources.files.compressed import CompressedFile
from ingest.sources.files.directory import find_binlogs
from ingest.sources.files.named import recognised
from tests.support.archives import COMPRESS, SKIPPABLE, compressed
from tests.support.binlog.forge import FileMaker
from tests.support.command_line import assert_sentence, binloom
from tests.support.in_process import binloom_here
from tests.support.landing.binlogs import transaction_ends
from tests.support.landing.full_disk import SmallDisk
from tests.support.landing.stored import stored
from tests.support.places import SAMPLES

pytestmark = pytest.mark.slow

SHOP = SAMPLES / "shop-mysql"
FILES = [SHOP / "binlog.000001", SHOP / "binlog.000002"]


@pytest.fixture(params=COMPRESS)
def archived(request: pytest.FixtureRequest, tmp_path: Path) -> list[Path]:
    """The files of the sample, compressed."""
    return [compressed(file, tmp_path, request.param) for file in FILES]


def only(path: Path) -> StoredFile:
    (found,) = recognised(path)
    assert isinstance(found, StoredFile)
    return found


def report(path: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(binloom_here("inspect", path, "--format", "json").stdout)
    del found["file"]
    return found


def test_inspect_reports_the_file_inside(archived: list[Path]) -> None:
    assert report(archived[0]) == report(FILES[0])


def test_the_listing_has_the_positions_of_the_file_inside(archived: list[Path]) -> None:
    there, here = (
        binloom_here("inspect", path, "--events", "--format", "csv").stdout.replace(str(path), "")
        for path in (archived[0], FILES[0])
    )
    assert there == here


def test_decode_prints_the_same_lines(archived: list[Path]) -> None:
    there, here = binloom_here("decode", *archived), binloom_here("decode", *FILES)
    assert (there.returncode, there.stderr, there.stdout) == (0, "", here.stdout)
    position = transaction_ends(FILES[0])[5]
    there, here = (binloom_here("decode", path, "--start-position", position) for path in (archived[0], FILES[0]))
    assert here.stdout and there.stdout == here.stdout


@pytest.mark.parametrize(
    "question",
    [
        ("query", "--table", "shop.orders", "--format", "json"),
        ("transactions", "--format", "json"),
        ("history", "shop.orders", "1002", "--format", "json"),
        ("state", "shop.orders", "--as-of", "2026-11-17 10:00:00", "--format", "json"),
        ("undo", "--table", "shop.orders", "--snapshot-dir", str(SHOP / "schema")),
        ("redo", "--table", "shop.orders", "--snapshot-dir", str(SHOP / "schema")),
    ],
    ids=lambda question: question[0],
)
@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_questions_are_answered_as_from_plain_files(question: tuple[str, ...], suffix: str, tmp_path: Path) -> None:
    archived = [compressed(file, tmp_path, suffix) for file in FILES]
    there, here = binloom_here(*question, "--files", *archived), binloom_here(*question, "--files", *FILES)
    assert here.stdout
    assert (there.returncode, there.stdout) == (here.returncode, here.stdout)


def test_files_are_recognised_by_their_bytes(tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(gzip.compress(FILES[0].read_bytes()))
    assert only(path).name == "binlog.000001"
    plain = tmp_path / "binlog.000002.gz"
    plain.write_bytes(FILES[1].read_bytes())
    assert recognised(plain) == [plain]


@pytest.mark.parametrize("suffix", [".zst", ".lz4"])
def test_frames_to_skip_may_be_anywhere(suffix: str, tmp_path: Path) -> None:
    data = compressed(FILES[0], tmp_path, suffix).read_bytes()
    path = tmp_path / f"binlog.000001{suffix}"
    path.write_bytes(SKIPPABLE + SKIPPABLE + data + SKIPPABLE)
    found, plain = scan_binlog(only(path)), scan_binlog(FILES[0])
    assert found.defect is None
    assert (found.events, found.file_size, found.segments) == (plain.events, plain.file_size, plain.segments)


def test_zeros_behind_a_stream_do_not_matter(tmp_path: Path) -> None:
    for suffix in (".gz", ".xz"):
        path = compressed(FILES[0], tmp_path, suffix)
        path.write_bytes(path.read_bytes() + bytes(512))
        assert scan_binlog(only(path)).defect is None


# --- damage ---


@pytest.fixture(params=[".gz", ".xz", ".bz2", ".zst", ".lz4"])
def cut(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A compressed file without its last bytes."""
    path = compressed(FILES[0], tmp_path, request.param)
    path.write_bytes(path.read_bytes()[:-20])
    return path


def test_a_cut_archive_is_told_with_the_position_reached(cut: Path) -> None:
    defect = scan_binlog(only(cut)).defect
    assert defect is not None and not defect.is_cut
    assert "compressed data is cut off" in defect.reason
    reported = report(cut)
    assert reported["defect"] == {"position": defect.position, "reason": defect.reason}
    assert binloom_here("inspect", cut).returncode == 1
    decoded = binloom_here("decode", cut)
    assert_sentence(decoded, 3, "compressed data is cut off", f"before position {defect.position} are printed")
    lines = binloom_here("decode", FILES[0]).stdout.splitlines()
    assert decoded.stdout.splitlines() == [line for line in lines if json.loads(line)["end_pos"] <= defect.position]
    asked = binloom_here("query", "--files", cut, "--format", "json")
    assert_sentence(asked, 3, f"at position {defect.position}")
    assert 0 < len(asked.stdout.splitlines()) <= len(decoded.stdout.splitlines())


def test_an_archive_without_its_end_is_damaged_though_every_event_is_there(tmp_path: Path) -> None:
    path = compressed(FILES[0], tmp_path, ".gz")
    path.write_bytes(path.read_bytes()[:-4])
    result = binloom_here("decode", path)
    assert_sentence(result, 3, "is cut off", f"position {FILES[0].stat().st_size}")
    assert result.stdout == binloom_here("decode", FILES[0]).stdout


def test_what_is_inside_must_be_a_binlog(tmp_path: Path) -> None:
    path = tmp_path / "notes.gz"
    path.write_bytes(gzip.compress(b"these are my notes"))
    for command in (("inspect",), ("decode",), ("query", "--files")):
        assert_sentence(binloom_here(*command, path), 2, "is not a binlog: it begins with 74 68 65 73")


def test_a_stream_that_asks_for_much_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001.xz"
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 30}]
    path.write_bytes(lzma.compress(FILES[0].read_bytes(), filters=filters))
    assert_sentence(binloom_here("decode", path), 3, "[Mm]emory usage limit")


def test_a_file_that_does_not_fit_on_the_disk_is_refused(tmp_path: Path) -> None:
    maker = FileMaker()
    path = tmp_path / "binlog.000001.gz"
    path.write_bytes(gzip.compress(bytes(maker.data) + bytes(80 << 20)))
    with SmallDisk(tmp_path / "disk") as disk:
        result = binloom("inspect", path, env={"TMPDIR": str(disk.folder)})
        assert_sentence(result, 3, "has no room for more than [0-9,]+ bytes of it", "TMPDIR")
        assert disk.used() == 0


def test_files_give_way_to_each_other_on_a_small_disk(tmp_path: Path) -> None:
    large = []
    for number in (1, 2, 3):
        path = tmp_path / f"binlog.00000{number}.gz"
        # The server's log, and behind it events that no reader knows: 24 MB of zeros.
        path.write_bytes(gzip.compress(FILES[0].read_bytes() + bytes(24 << 20), 1))
        large.append(path)
    with SmallDisk(tmp_path / "disk") as disk:
        result = binloom("query", "--files", *large, "--format", "csv", env={"TMPDIR": str(disk.folder)})
    assert "no room" not in result.stderr
    assert len(result.stdout.splitlines()) == 1 + 3 * len(binloom_here("decode", FILES[0]).stdout.splitlines())


def test_processes_keep_only_the_files_that_they_land(tmp_path: Path) -> None:
    archives = tmp_path / "archives"
    archives.mkdir()
    data, ends = FILES[0].read_bytes(), transaction_ends(FILES[0])
    transactions = data[ends[0] : ends[-1]]
    large = gzip.compress(data[: ends[0]] + transactions * ((2 << 20) // len(transactions)), 1)
    for number in range(1, 10):
        (archives / f"binlog.00000{number}.gz").write_bytes(large)
    with SmallDisk(tmp_path / "disk", megabytes=13) as disk:
        arguments = ("ingest", "--source", "shop", "--binlog-dir", archives, "--all")
        result = binloom(*arguments, home=tmp_path / "home", env={"TMPDIR": str(disk.folder)})
    assert result.returncode == 0, result.stderr
    assert "of 9 files" in result.stdout


# --- landing ---


def folder_of_archives(folder: Path, *suffixes: str) -> Path:
    folder.mkdir()
    for file, suffix in zip(FILES, suffixes, strict=True):
        compressed(file, folder, suffix)
    return folder


def test_a_compressed_file_lands_as_the_file_inside(tmp_path: Path) -> None:
    archives = folder_of_archives(tmp_path / "archives", ".gz", ".zst")
    ingest("shop", find_binlogs(SHOP), home=tmp_path / "plain")
    ingest("shop", find_binlogs(archives), home=tmp_path / "home")
    assert stored(tmp_path / "home") == stored(tmp_path / "plain")
    for home, folder in ((tmp_path / "home", SHOP), (tmp_path / "plain", archives)):
        again = ingest("shop", find_binlogs(folder), home=home)
        assert (again.segments, again.files_skipped, again.problems) == (0, 2, [])


def test_processes_land_a_compressed_file_in_parts(tmp_path: Path) -> None:
    archives = folder_of_archives(tmp_path / "archives", ".xz", ".bz2")
    options = IngestOptions(segment_bytes=8_000, processes=2)
    ingest("shop", find_binlogs(SHOP), options, home=tmp_path / "plain")
    result = ingest("shop", find_binlogs(archives), options, home=tmp_path / "home")
    assert result.segments > 4 and not result.problems
    assert stored(tmp_path / "home") == stored(tmp_path / "plain")


def test_a_damaged_archive_is_landed_up_to_the_damage_and_then_completed(tmp_path: Path) -> None:
    archives = folder_of_archives(tmp_path / "archives", ".gz", ".zst")
    damaged = archives / "binlog.000001.gz"
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-3000])
    for _ in range(2):
        result = binloom_here("ingest", "--source", "shop", "--binlog-dir", archives, "--all", home=tmp_path / "home")
        assert_sentence(result, 3, "binlog.000001.gz is broken at position [0-9]+: its compressed data is cut off")
    damaged.write_bytes(whole)
    result = binloom_here("ingest", "--source", "shop", "--binlog-dir", archives, "--all", home=tmp_path / "home")
    assert (result.returncode, result.stderr) == (0, "")
    ingest("shop", find_binlogs(SHOP), home=tmp_path / "plain")
    assert sorted(rows(tmp_path / "home")) == sorted(rows(tmp_path / "plain"))


def rows(home: Path) -> list[str]:
    found = binloom_here("sql", "select * from row_changes", "--format", "json", home=home)
    assert found.returncode == 0, found.stderr
    return found.stdout.splitlines()


def test_a_plain_file_goes_before_its_compressed_copy(tmp_path: Path) -> None:
    (tmp_path / FILES[0].name).write_bytes(FILES[0].read_bytes())
    compressed(FILES[0], tmp_path, ".gz")
    compressed(FILES[1], tmp_path, ".gz")
    first, second = find_binlogs(tmp_path)
    assert first.path == tmp_path / "binlog.000001"
    assert isinstance(second.path, CompressedFile) and second.name == "binlog.000002"
    twice = binloom_here(
        "ingest", "--source", "s", "--binlog-dir", tmp_path, "--files", "binlog.000001,binlog.000001.gz"
    )
    assert_sentence(twice, 2, "are the same file of the log, binlog.000001")
