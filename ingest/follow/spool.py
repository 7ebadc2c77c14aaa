"""The spool of a followed source: the server's binlog files as received, and how far they are durable.

Files of epoch 0 are in the source's folder, files of later epochs in `epoch-N/`. Each file is complete from its first
byte on, and identical to the server's file byte for byte.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, Self

from ingest.binlog import Scan
from ingest.binlog.events.format import FLAG_IN_USE, MAGIC
from ingest.binlog.scan import Scanner
from ingest.errors import StoreError
from ingest.follow.checkpoint import Checkpoint, spool_folder
from ingest.sources.files.directory import PlainBinlog, binlog_path
from ingest.warehouse.files import make_folder, store_errors, sync_folder
from ingest.warehouse.names import require_server_file
from ingest.warehouse.segments import FIRST_EVENT

# Offset of the flags in an event.
_FLAGS: Final = 17


class Spool:
    """The spool folder of a source.

    Parameters
    ----------
    source_id
        Name of the source.
    home
        Folder that binloom keeps everything under.
    """

    def __init__(self, source_id: str, home: Path) -> None:
        self.folder = spool_folder(source_id, home)
        self.checkpoint = Checkpoint.read(self.folder)

    def epoch_folder(self, epoch: int) -> Path:
        """Return the folder of an epoch's files."""
        return self.folder / f"epoch-{epoch}" if epoch else self.folder

    def path(self, epoch: int, binlog_file: str) -> Path:
        """Return the path of a file.

        Raises
        ------
        BrokenStreamError
            The name comes from the server and is not a valid name of a binlog file in this folder.
        """
        require_server_file(binlog_file)
        return self.epoch_folder(epoch) / binlog_file

    def files(self, epoch: int) -> list[PlainBinlog]:
        """Return the files of an epoch in the order in which they were written."""
        folder = self.epoch_folder(epoch)
        if not folder.is_dir():
            return []
        found = [binlog_path(path) for path in folder.iterdir() if path.is_file()]
        return sorted((file for file in found if file.sequence is not None), key=lambda file: file.sequence or 0)

    def write_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Record how far the spool is durable.

        Raises
        ------
        BrokenStreamError
            The file name comes from the server and is not a valid name of a binlog file in this folder.
        """
        require_server_file(checkpoint.binlog_file)
        checkpoint.write(self.folder)
        self.checkpoint = checkpoint

    def drop_unsynced(self) -> None:
        """Drop everything after the checkpoint, because it may be incomplete on the disk.

        Raises
        ------
        StoreError
            A file cannot be truncated or deleted, or is shorter than the checkpoint says.
        """
        checkpoint = self.checkpoint
        if checkpoint is None:
            leftovers = [file.path for file in self.files(0)]
        else:
            current = binlog_path(self.path(checkpoint.epoch, checkpoint.binlog_file))
            leftovers = [
                file.path
                for file in self.files(checkpoint.epoch)
                if (file.sequence or 0) > (current.sequence or 0) or file.base != current.base
            ]
            if current.path.exists():
                if checkpoint.position > FIRST_EVENT:
                    _cut(current.path, checkpoint.position)
                else:
                    # Nothing of the file is confirmed: receive it again from the start.
                    leftovers.append(current.path)
        for path in leftovers:
            with store_errors(path):
                path.unlink()

    def size(self) -> tuple[int, int]:
        """Return the number of files and their total size in bytes."""
        sizes = [path.stat().st_size for path in self._all()]
        return len(sizes), sum(sizes)

    def prune(self, landed: Iterable[Path], max_age: float | None, max_size: int | None) -> list[Path]:
        """Delete files that are closed and landed, oldest first.

        Parameters
        ----------
        landed
            Files that may be deleted, oldest first.
        max_age
            Delete files whose last byte is older than this number of seconds; None: no limit.
        max_size
            Maximum total size of all files in bytes; None: no limit.

        Returns
        -------
        list of Path
            Deleted files.
        """
        gone = []
        total, now = self.size()[1], time.time()
        for path in landed:
            stat = path.stat()
            if (max_age is not None and now - stat.st_mtime > max_age) or (max_size is not None and total > max_size):
                path.unlink()
                total -= stat.st_size
                gone.append(path)
        return gone

    def _all(self) -> Iterator[Path]:
        return (path for path in self.folder.rglob("*") if path.is_file() and binlog_path(path).sequence is not None)


def _cut(path: Path, size: int) -> None:
    """Truncate a file to its durable bytes."""
    found = path.stat().st_size
    if found < size:
        raise StoreError(
            f"{path} has {found} bytes, but {size} were received: somebody or something has truncated it.",
            hint="Delete the file and run the same command again: the server sends it once more, if it still has it.",
            path=str(path),
        )
    if found > size:
        with store_errors(path), open(path, "r+b", buffering=0) as file:
            file.truncate(size)
            # If the file had a closing event, it was the last one and is truncated now: mark the file as in use again.
            _change_flags(file.fileno(), lambda flags: flags | FLAG_IN_USE)


def _change_flags(descriptor: int, change: Callable[[int], int]) -> None:
    """Change the flags of a file's format description, which contain the in-use flag."""
    flags = int.from_bytes(os.pread(descriptor, 2, FIRST_EVENT + _FLAGS), "little")
    os.pwrite(descriptor, change(flags).to_bytes(2, "little"), FIRST_EVENT + _FLAGS)


class ReceivedFile:
    """The file that is being received.

    Parameters
    ----------
    path
        Path of the file, which must exist; new events are appended.

    Attributes
    ----------
    end
        Number of bytes received.
    sure
        End of the last event whose position the server has confirmed.
    synced
        Offset up to which the file is durable: the end of a transaction.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with store_errors(path):
            self._descriptor = os.open(path, os.O_RDWR)
            self.end = self.sure = os.fstat(self._descriptor).st_size
            os.lseek(self._descriptor, 0, os.SEEK_END)
        self._scanner = Scanner(path)
        self.synced = FIRST_EVENT
        self.scan = self.sync()

    @classmethod
    def begin(cls, path: Path, format_event: bytes) -> Self:
        """Create a file with its first event, marked as in use because the server still writes to it."""
        flags = int.from_bytes(format_event[_FLAGS : _FLAGS + 2], "little") | FLAG_IN_USE
        event = format_event[:_FLAGS] + flags.to_bytes(2, "little") + format_event[_FLAGS + 2 :]
        with store_errors(path):
            make_folder(path.parent)
            path.write_bytes(MAGIC + event)
            sync_folder(path.parent)
        return cls(path)

    def append(self, data: bytes | memoryview, sure: int) -> None:
        """Append complete events; the server has confirmed the positions of the first `sure` bytes."""
        if not len(data):
            return
        with store_errors(self.path):
            left = memoryview(data)
            while left:
                left = left[os.write(self._descriptor, left) :]
        if sure > 0:
            self.sure = self.end + sure
        self.end += len(data)

    def roll_back(self) -> None:
        """Drop trailing events whose position the server has not confirmed."""
        if self.end == self.sure:
            return
        with store_errors(self.path):
            os.ftruncate(self._descriptor, self.sure)
            os.lseek(self._descriptor, 0, os.SEEK_END)
        self.end = self.sure
        self._scanner.close()
        self._scanner = Scanner(self.path)

    def sync(self) -> Scan:
        """Make the received bytes durable, and find the end of the last complete transaction."""
        self.scan = self._scanner.scan(self.sure)
        with store_errors(self.path):
            os.fdatasync(self._descriptor)
        self.synced = max(self.synced, self.scan.complete_end)
        return self.scan

    def mark_closed(self) -> None:
        """Clear the in-use flag, as the server does in its own file when it closes it."""
        with store_errors(self.path):
            # The closing event must be on the disk before the flag is cleared.
            os.fdatasync(self._descriptor)
            _change_flags(self._descriptor, lambda flags: flags & ~FLAG_IN_USE)

    def close(self) -> None:
        """Close the file."""
        self._scanner.close()
        os.close(self._descriptor)
