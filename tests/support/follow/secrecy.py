"""Checks that a password is readable only for its owner."""

from pathlib import Path

import pyarrow.parquet as pq

from tests.support.follow.follower import Follower


def assert_not_told(password: str, follower: Follower) -> None:
    """Search for a password in everything that a follower has written: its home, its output, its command line."""
    secret = password.encode()
    assert password not in " ".join(follower.command())
    assert password not in follower.output()
    told = [str(path) for path in sorted(follower.home.rglob("*")) if path.is_file() and secret in _content(path)]
    assert not told, f"the password is in {told}"


def command_lines(pid: int) -> str:
    """Return the command lines that `ps` shows for a process and all others of its session."""
    shown = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            session = int((folder / "stat").read_text().rpartition(")")[2].split()[3])
            if session == pid:
                shown.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            pass
    return "\n".join(shown)


def _content(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".parquet":  # its pages are compressed
        chunks = (chunk for column in pq.ParquetFile(path).read().columns for chunk in column.chunks)
        data += b"".join(buffer.to_pybytes() for chunk in chunks for buffer in chunk.buffers() if buffer is not None)
    return data
