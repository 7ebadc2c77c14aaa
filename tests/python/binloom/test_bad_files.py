"""Output of `inspect` and `decode` for files that are not binlogs, or are incomplete."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from binloom.commands.decode import decode_files
from binloom.commands.output import Format
from ingest.binlog import open_binlog
from tests.support.command_line import assert_sentence, binloom
from tests.support.in_process import binloom_here
from tests.support.places import SAMPLES

pytestmark = pytest.mark.slow

SAMPLE = SAMPLES / "shop-mysql" / "binlog.000002"
MAGIC = b"\xfebin"
BOTH = pytest.mark.parametrize("command", ["inspect", "decode"])


@BOTH
def test_a_file_that_is_no_binlog_is_refused(command: str, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("nothing to see here\n")
    assert_sentence(binloom_here(command, path), 2, "notes.txt", "[Bb]inlog")


@BOTH
def test_an_empty_file_is_refused(command: str, tmp_path: Path) -> None:
    path = tmp_path / "binlog.000009"
    path.touch()
    assert_sentence(binloom_here(command, path), 2, "binlog.000009", "empty")


@BOTH
def test_a_missing_file_is_named(command: str, tmp_path: Path) -> None:
    assert_sentence(binloom_here(command, tmp_path / "binlog.000404"), 2, "binlog.000404")


@BOTH
def test_a_directory_is_not_a_file(command: str, tmp_path: Path) -> None:
    result = binloom_here(command, tmp_path)
    assert result.returncode in (2, 3)
    assert_sentence(result, result.returncode, str(tmp_path), "[Dd]irectory|folder")


@BOTH
def test_a_file_without_permission_is_named(command: str, tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(SAMPLE.read_bytes())
    path.chmod(0)
    assert_sentence(binloom(command, path, obey_permissions=True), 3, "binlog.000001", "[Pp]ermission")


@BOTH
def test_a_file_in_a_directory_without_permission_is_named(command: str, tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    (folder / "binlog.000001").write_bytes(SAMPLE.read_bytes())
    folder.chmod(0)
    try:
        assert_sentence(
            binloom(command, folder / "binlog.000001", obey_permissions=True), 3, "binlog.000001", "[Pp]ermission"
        )
    finally:
        folder.chmod(0o755)


@BOTH
def test_an_encrypted_file_is_recognised(command: str, tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(b"\xfdbin" + bytes(600))
    assert_sentence(binloom_here(command, path), 3, "binlog.000001", "encrypted")


@BOTH
def test_a_file_of_nothing_but_the_magic_is_cut(command: str, tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(MAGIC)
    result = binloom_here(command, path)
    assert result.returncode != 0
    assert_sentence(result, result.returncode, "binlog.000001")


def test_a_cut_file_says_where_and_keeps_what_stands_before(tmp_path: Path) -> None:
    whole = binloom_here("decode", SAMPLE).stdout.splitlines()
    path = tmp_path / "binlog.000002"
    content = SAMPLE.read_bytes()
    path.write_bytes(content[: len(content) // 2])

    decoded = binloom_here("decode", path)
    assert_sentence(decoded, 3, r"position \d+")
    kept = decoded.stdout.splitlines()
    assert 0 < len(kept) < len(whole)
    assert kept == whole[: len(kept)]

    report = binloom_here("inspect", path, "--format", "json")
    assert report.returncode == 1
    defect = json.loads(report.stdout)["defect"]
    assert defect is not None and json.loads(kept[-1])["end_pos"] <= defect["position"] <= len(content) // 2


def test_a_flipped_bit_says_where_and_keeps_what_stands_before(tmp_path: Path) -> None:
    whole = binloom_here("decode", SAMPLE).stdout.splitlines()
    position = json.loads(whole[len(whole) // 2])["start_pos"]
    content = bytearray(SAMPLE.read_bytes())
    content[position + 25] ^= 0x10
    path = tmp_path / "binlog.000002"
    path.write_bytes(content)

    decoded = binloom_here("decode", path)
    assert_sentence(decoded, 3, f"position {position}", "checksum|CRC")
    assert decoded.stdout.splitlines() == [line for line in whole if json.loads(line)["start_pos"] < position]

    report = binloom_here("inspect", path)
    assert report.returncode == 1
    assert f"damaged at position {position}" in report.stdout


def test_the_next_file_is_still_read(tmp_path: Path) -> None:
    broken = tmp_path / "binlog.000001"
    broken.write_bytes(SAMPLE.read_bytes()[:-40])
    nothing = tmp_path / "binlog.000002"
    nothing.touch()
    result = binloom_here("decode", broken, nothing, SAMPLE)
    assert_sentence(result, 3, "binlog.000001", "binlog.000002")
    whole = binloom_here("decode", SAMPLE).stdout
    assert whole and result.stdout.endswith(whole)
    assert len(result.stdout) > len(whole)


def test_a_cut_anywhere_gives_a_prefix_and_never_silence(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Cut at each event boundary, one byte before and after it, and at many places inside of events."""
    content = SAMPLE.read_bytes()
    boundaries = [4, *(event.end_position for event in open_binlog(SAMPLE).events())]
    rows = _batches("row_events", ["transaction_pos", "end_pos"])
    ends = {one["start_pos"]: one["end_pos"] for one in _batches("transactions", ["start_pos", "end_pos"])}
    whole = _decoded(SAMPLE, capfdbinary)[1]
    choice = random.Random(7)
    cuts = {cut for end in choice.sample(boundaries, 40) for cut in (end - 1, end, end + 1)}
    cuts |= {choice.randrange(len(content)) for _ in range(120)} | {0, 1, 4, 5, 22, 23, 24}
    path = tmp_path / "binlog.000002"
    for cut in sorted(cut for cut in cuts if cut < len(content)):
        path.write_bytes(content[:cut])
        code, out, err = _decoded(path, capfdbinary)
        assert whole.startswith(out), f"cut at {cut}"
        if cut in boundaries and cut > 4:
            # Nothing in the file shows that an event followed, but a transaction without an end shows itself.
            is_open = any(one["transaction_pos"] < one["end_pos"] <= cut < ends[one["transaction_pos"]] for one in rows)
            assert (code, b"has no end in the file" in err) == (0, is_open), f"cut at {cut}"
            assert is_open or err == b"", f"cut at {cut}"
        else:
            assert code in (2, 3), f"cut at {cut}"
            assert err.startswith(b"binloom: ") and path.name.encode() in err, f"cut at {cut}"


def test_a_bit_flipped_anywhere_gives_a_prefix_and_never_silence(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    content = SAMPLE.read_bytes()
    whole = _decoded(SAMPLE, capfdbinary)[1]
    choice = random.Random(11)
    # The checksum of the format description does not cover its IN_USE bit, by design.
    places = [place for place in (choice.randrange(len(content)) for _ in range(200)) if place != 4 + 17]
    path = tmp_path / "binlog.000002"
    for place in places:
        broken = bytearray(content)
        broken[place] ^= 1 << choice.randrange(8)
        path.write_bytes(broken)
        code, out, err = _decoded(path, capfdbinary)
        assert whole.startswith(out) and len(out) < len(whole), f"bit of byte {place}"
        assert code in (2, 3) and err.startswith(b"binloom: "), f"bit of byte {place}"


def _batches(wanted: str, columns: list[str]) -> list[dict[str, Any]]:
    found = (batch.select(columns).to_pylist() for kind, batch in open_binlog(SAMPLE).batches() if kind == wanted)
    return [row for rows in found for row in rows]


def _decoded(path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> tuple[int, bytes, bytes]:
    """Decode in this process: a new process for each of hundreds of cuts would take minutes."""
    import sys

    capfdbinary.readouterr()
    code = decode_files([path], Format.JSON, None, None, None, None)
    sys.stdout.flush()
    out, err = capfdbinary.readouterr()
    return code, out, err
