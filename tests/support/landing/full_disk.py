"""Simulates full disks: a real small disk, a limit on file size, and operations that fail."""

import contextlib
import errno
import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

# Operations that change files. Writes of pyarrow and of Python's own files bypass them: see `file_size_limit`.
OPERATIONS = ("write", "fsync", "fdatasync", "replace", "mkdir", "truncate", "ftruncate", "pwrite", "unlink")


@contextlib.contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let each write of this process fail that would make a file larger than `size` bytes, as a quota does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextlib.contextmanager
def full_from_operation(number: int) -> Iterator[list[str]]:
    """Let file operations of this process fail from the n-th one on, except deletions; yield the list of operations."""
    done: list[str] = []

    def counted(name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            done.append(name)
            if len(done) >= number and name != "unlink":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return operation(*arguments, **options)

        return run

    with pytest.MonkeyPatch.context() as patched:
        for name in OPERATIONS:
            patched.setattr(os, name, counted(name, getattr(os, name)))
        yield done


class SmallDisk:
    """A disk of a few megabytes, mounted on a folder; also a context manager, which unmounts it.

    Parameters
    ----------
    folder
        The mount point; it is created.
    megabytes
        Its size.
    """

    def __init__(self, folder: Path, megabytes: int = 64) -> None:
        self.folder = folder
        folder.mkdir()
        mounted = _run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder))
        if mounted:
            pytest.skip(f"no disk can be mounted here: {mounted}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _run("umount", "--lazy", str(self.folder))

    def leave_free(self, size: int) -> None:
        """Shrink it until this many bytes are free."""
        total = self.used() + size
        error = _run("mount", "-o", f"remount,size={max(total, 4096)}", str(self.folder))
        assert not error, error

    def used(self) -> int:
        """Bytes that files use."""
        return shutil.disk_usage(self.folder).used

    def empty(self) -> None:
        """Give it free space again."""
        assert not _run("mount", "-o", "remount,size=512m", str(self.folder))


def _run(*command: str) -> str:
    """Run a command; its output is the message when it fails."""
    if shutil.which(command[0]) is None:
        return f"there is no {command[0]}"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""
