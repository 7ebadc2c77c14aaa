"""Checks that the spool's files equal the server's files byte for byte."""

from collections.abc import Sequence
from pathlib import Path

from ingest.binlog import scan_binlog

# Offset of the flags of the format description event, and the flag of a file that is being written.
# Source: MySQL's libs/mysql/binlog/event/binlog_event.h, `FLAGS_OFFSET` and `LOG_EVENT_BINLOG_IN_USE_F`.
FLAGS_AT = 4 + 17
IN_USE = 0x1


def assert_same_files(spool: Sequence[Path], server: Sequence[Path]) -> None:
    """Compare files by name: only the spool's last file may be shorter.

    After a crash of the server no event marks the end of a file, and servers differ in whether such a file keeps
    its in-use flag: then this bit alone is ignored.
    """
    assert spool, "the spool is empty"
    theirs = {path.name: path for path in server}
    names = [path.name for path in spool]
    assert names == [name for name in theirs if name >= names[0]], f"the server has {list(theirs)}, the spool {names}"
    for path in spool:
        ours, original = path.read_bytes(), theirs[path.name].read_bytes()
        if path is spool[-1]:
            original = original[: len(ours)]
        elif _was_left(theirs[path.name]):
            ours, original = _without_flag(ours), _without_flag(original)
        assert ours == original, _difference(path, ours, original)


def _was_left(path: Path) -> bool:
    counts = scan_binlog(path).event_counts
    return not (counts.get("ROTATE") or counts.get("STOP"))


def _without_flag(data: bytes) -> bytes:
    return data[:FLAGS_AT] + bytes([data[FLAGS_AT] & ~IN_USE]) + data[FLAGS_AT + 1 :]


def _difference(path: Path, ours: bytes, theirs: bytes) -> str:
    at = next((at for at, (one, two) in enumerate(zip(ours, theirs, strict=False)) if one != two), None)
    where = f"at {at}: {ours[at : at + 8].hex(' ')} for {theirs[at : at + 8].hex(' ')}" if at is not None else ""
    return f"{path.name} differs from the server's: {len(ours):,} bytes for {len(theirs):,} {where}"
