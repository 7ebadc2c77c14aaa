"""Binlog files in tar archives."""

import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest.landing import IngestOptions, ingest
from ingest.sources.files.directory import find_binlogs
from ingest.sources.files.named import recognised
from tests.support.archives import COMPRESS, compressed
from tests.support.command_line import assert_sentence, binloom
from tests.support.in_process import binloom_here
from tests.support.landing.full_disk import SmallDisk
from tests.support.landing.stored import stored
from tests.support.places import SAMPLES

pytestmark = pytest.mark.slow

SHOP = SAMPLES / "shop-mysql"
FILES = [SHOP / "binlog.000001", SHOP / "binlog.000002"]
QUERY = ("query", "--format", "json", "--files")


def archive(folder: Path, *files: Path, name: str = "logs.tar", suffix: str = "") -> Path:
    """Write an archive of files, with folders and a file that is not a binlog."""
    path = folder / (name + suffix)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for file in files:
            tar.add(file, arcname=f"backup/monday/{file.name}")
        tar.add(SHOP / "schema", arcname="backup/schema")
        tar.addfile(text := tarfile.TarInfo("backup/notes"), io.BytesIO())
        assert text.size == 0
    path.write_bytes(COMPRESS[suffix](packed.getvalue()) if suffix else packed.getvalue())
    return path


@pytest.mark.parametrize("suffix", ["", *COMPRESS])
def test_the_files_in_an_archive_are_read(suffix: str, tmp_path: Path) -> None:
    path = archive(tmp_path, *FILES, suffix=suffix)
    assert [(file.name, str(file)) for file in recognised(path)] == [
        (file.name, f"{path}/backup/monday/{file.name}") for file in FILES
    ]
    assert binloom_here(*QUERY, path).stdout == binloom_here(*QUERY, *FILES).stdout
    assert binloom_here("decode", path).stdout == binloom_here("decode", *FILES).stdout
    there = [json.loads(line) for line in binloom_here("inspect", path, "--format", "json").stdout.splitlines()]
    here = [json.loads(line) for line in binloom_here("inspect", *FILES, "--format", "json").stdout.splitlines()]
    for one in (*there, *here):
        one["file"] = one["file"].rpartition("/")[2]
    assert there == here


def test_compressed_files_in_an_archive_are_read(tmp_path: Path) -> None:
    inner = [compressed(FILES[0], tmp_path, ".gz"), compressed(FILES[1], tmp_path, ".zst")]
    for suffix in ("", ".gz"):
        path = archive(tmp_path, *inner, suffix=suffix)
        result = binloom_here(*QUERY, path)
        assert (result.returncode, result.stdout) == (0, binloom_here(*QUERY, *FILES).stdout)


def test_an_undo_is_that_of_the_files(tmp_path: Path) -> None:
    options = ("--table", "shop.orders", "--snapshot-dir", SHOP / "schema", "--files")
    plain = binloom_here("undo", *options, *FILES)
    assert plain.stdout
    assert binloom_here("undo", *options, archive(tmp_path, *FILES, suffix=".zst")).stdout == plain.stdout


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_an_archive_is_landed_as_its_files(suffix: str, tmp_path: Path) -> None:
    folder = tmp_path / "archives"
    folder.mkdir()
    path = archive(folder, *FILES, suffix=suffix)
    ingest("shop", find_binlogs(SHOP), home=tmp_path / "plain")
    ingest("shop", find_binlogs(folder, [path.name]), home=tmp_path / "home")
    assert stored(tmp_path / "home") == stored(tmp_path / "plain")
    options = IngestOptions(segment_bytes=8_000, processes=2)
    ingest("shop", find_binlogs(SHOP), options, home=tmp_path / "plain-parts")
    ingest("shop", find_binlogs(folder, [path.name]), options, home=tmp_path / "parts")
    assert stored(tmp_path / "parts") == stored(tmp_path / "plain-parts")
    again = ingest("shop", find_binlogs(SHOP), home=tmp_path / "home")
    assert (again.segments, again.files_skipped) == (0, 2)


def test_a_plain_archive_is_not_unpacked(tmp_path: Path) -> None:
    path = archive(tmp_path, *FILES)
    with SmallDisk(tmp_path / "disk") as disk:
        disk.leave_free(0)
        result = binloom(*QUERY, path, env={"TMPDIR": str(disk.folder)})
    assert (result.returncode, result.stdout) == (0, binloom_here(*QUERY, *FILES).stdout)


# --- what is refused ---


def link(kind: bytes) -> tarfile.TarInfo:
    found = tarfile.TarInfo("binlog.000001")
    found.type, found.linkname = kind, "/etc/passwd"
    return found


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        (link(tarfile.SYMTYPE), "a link to '/etc/passwd'"),
        (link(tarfile.LNKTYPE), "a link to '/etc/passwd'"),
        (link(tarfile.CHRTYPE), "not a plain file"),
        (tarfile.TarInfo("../../binlog.000001"), "a path out of the archive"),
        (tarfile.TarInfo("/var/lib/mysql/binlog.000001"), "a path out of the archive"),
    ],
)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_links_and_paths_out_of_the_archive_are_refused(
    member: tarfile.TarInfo, reason: str, suffix: str, tmp_path: Path
) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(FILES[1], arcname=FILES[1].name)
        tar.addfile(member, io.BytesIO())
    path = tmp_path / "logs.tar"
    path.write_bytes(COMPRESS[suffix](packed.getvalue()) if suffix else packed.getvalue())
    for command in (("inspect",), ("decode",), QUERY):
        result = binloom_here(*command, path)
        assert_sentence(result, 3, reason)
        assert result.stdout == ""
    arguments = ("ingest", "--source", "shop", "--binlog-dir", tmp_path, "--files", path.name)
    assert_sentence(binloom_here(*arguments, home=tmp_path / "home"), 3, reason)
    assert not (tmp_path / "home" / "warehouse").exists()


def cut_in_a_file(data: bytes) -> bytes:
    return data[:40_000]


def cut_between_files(data: bytes) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return data[: tar.getmembers()[1].offset]


def with_a_damaged_header(data: bytes) -> bytes:
    end = len(cut_between_files(data))
    return data[:end] + b"?" * 512 + data[end + 512 :]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_file_that_is_cut_off_in_an_archive_is_damaged(suffix: str, tmp_path: Path) -> None:
    path = archive(tmp_path, *FILES)
    data = cut_in_a_file(path.read_bytes())
    path.write_bytes(COMPRESS[suffix](data) if suffix else data)
    result = binloom_here("decode", path)
    assert_sentence(result, 3, "the archive ends [0-9,]+ bytes before the end of the file in it")
    assert 0 < len(result.stdout.splitlines()) < len(binloom_here("decode", FILES[0]).stdout.splitlines())


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("damage", [cut_between_files, with_a_damaged_header])
def test_an_archive_that_may_lack_files_is_refused(
    damage: Callable[[bytes], bytes], suffix: str, tmp_path: Path
) -> None:
    path = archive(tmp_path, *FILES)
    data = damage(path.read_bytes())
    path.write_bytes(COMPRESS[suffix](data) if suffix else data)
    result = binloom_here(*QUERY, path)
    assert_sentence(
        result,
        3,
        "so files may be missing",
        f"position {len(cut_between_files(archive(tmp_path, *FILES).read_bytes()))}",
    )
    assert result.stdout == ""


def test_an_archive_needs_a_binlog(tmp_path: Path) -> None:
    assert_sentence(binloom_here("inspect", archive(tmp_path)), 3, "an archive without a binlog")


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_an_archive_in_an_archive_is_refused(suffix: str, tmp_path: Path) -> None:
    inner = archive(tmp_path, FILES[1], name="inner.tar", suffix=suffix)
    assert_sentence(binloom_here("inspect", archive(tmp_path, FILES[0], inner)), 3, "an archive in an archive")


def test_an_archive_behind_an_archive_is_refused(tmp_path: Path) -> None:
    both = tmp_path / "both.tar"
    both.write_bytes(b"".join(archive(tmp_path, one).read_bytes() for one in FILES))
    assert_sentence(binloom_here("inspect", both), 3, "goes on behind its end at position", "another archive")


def test_what_macos_adds_to_an_archive_is_no_binlog(tmp_path: Path) -> None:
    attributes = tmp_path / "._binlog.000001"
    attributes.write_bytes(b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X")
    plain, other = archive(tmp_path, FILES[0], name="plain.tar"), archive(tmp_path, attributes, FILES[0])
    assert binloom_here("decode", other).stdout == binloom_here("decode", plain).stdout != ""


def test_a_file_that_holds_zeros_where_an_archive_names_a_binlog_is_told(tmp_path: Path) -> None:
    zeros = tmp_path / "binlog.000003"
    zeros.write_bytes(bytes(1000))
    result = binloom_here("inspect", archive(tmp_path, FILES[0], zeros))
    assert_sentence(result, 2, "binlog.000003 is not a binlog")
    assert "binlog.000001" in result.stdout


def test_the_oldest_form_of_an_archive_is_known(tmp_path: Path) -> None:
    plain, old = archive(tmp_path, *FILES), tmp_path / "old.tar"
    with tarfile.open(fileobj=io.BytesIO(plain.read_bytes())) as tar, old.open("wb") as out:
        for member in (one for one in tar.getmembers() if one.isreg()):
            header = bytearray(member.tobuf(tarfile.USTAR_FORMAT))
            # Source: GNU tar manual, "Basic Tar Format": without a magic, owner and group.
            header[257:512] = bytes(255)
            header[148:156] = b" " * 8
            header[148:156] = b"%06o\0 " % sum(header)
            out.write(header + plain.read_bytes()[member.offset_data :][: -(-member.size // 512) * 512])
        out.write(bytes(1024))
    assert binloom_here(*QUERY, old).stdout == binloom_here(*QUERY, plain).stdout != ""


def test_a_binlog_that_another_program_packed_is_told(tmp_path: Path) -> None:
    packed = tmp_path / "binlog.000002.zip"
    with zipfile.ZipFile(packed, "w") as file:
        file.write(FILES[1], FILES[1].name)
    assert_sentence(binloom_here("inspect", packed), 2, "is a file of zip, which binloom does not read", "Unpack")
    both = archive(tmp_path, FILES[0], packed)
    assert_sentence(binloom_here(*QUERY, both), 3, "contains 'backup/monday/binlog.000002.zip'", "cannot unpack")
