"""The spool of a followed source: the server's binlog files as they came, and how far they are durable.

Files of epoch 0 lie in the source's folder, those of a later one in `epoch-N/`. Each is whole from its first byte on,
and byte for byte the server's own.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, Self

from ingest.binlog import Scan
from ingest.binlog.format import FLAG_IN_USE, MAGIC
from ingest.binlog.scan import Scanner
from ingest.errors import StoreError
from ingest.follow.checkpoint import Checkpoint, spool_folder
from ingest.sources.directory import BinlogPath, binlog_path
from ingest.warehouse.files import make_folder, store_errors, sync_folder
from ingest.warehouse.names import require_server_file

FIRST_EVENT: Final = len(MAGIC)

# Offset of an event's flags behind its first byte.
_FLAGS: Final = 17


class Spool:
    """The folder of a source.

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
        """Return where a file lies.

        Raises
        ------
        BrokenStreamError
            The name, which the server gave, is not that of a binlog file in this folder.
        """
        require_server_file(binlog_file)
        return self.epoch_folder(epoch) / binlog_file

    def files(self, epoch: int) -> list[BinlogPath]:
        """Return the files of an epoch in the order in which they were written."""
        folder = self.epoch_folder(epoch)
        if not folder.is_dir():
            return []
        found = [binlog_path(path) for path in folder.iterdir() if path.is_file()]
        return sorted((file for file in found if file.sequence is not None), key=lambda file: file.sequence or 0)

    def write_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Say how far the spool is durable.

        Raises
        ------
        BrokenStreamError
            The name of its file, which the server gave, is not that of a binlog file in this folder.
        """
        require_server_file(checkpoint.binlog_file)
        checkpoint.write(self.folder)
        self.checkpoint = checkpoint

    def drop_unsynced(self) -> None:
        """Take away what came after the checkpoint: nothing says that it is whole on the disk.

        Raises
        ------
        StoreError
            A file cannot be cut or deleted, or has less than the checkpoint says.
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
                    # It had only begun, and is begun anew.
                    leftovers.append(current.path)
        for path in leftovers:
            with store_errors(path):
                path.unlink()

    def size(self) -> tuple[int, int]:
        """Return how many files there are, and their bytes."""
        sizes = [path.stat().st_size for path in self._all()]
        return len(sizes), sum(sizes)

    def prune(self, landed: Iterable[Path], max_age: float | None, max_size: int | None) -> list[Path]:
        """Delete files that are closed and landed, oldest first.

        Parameters
        ----------
        landed
            Which files may go.
        max_age
            Seconds since its last byte from which on a file goes; None for none by age.
        max_size
            Bytes that all files may have together; None for any number.

        Returns
        -------
        list of Path
            What was deleted.
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
    """Cut a file to the bytes that are durable."""
    found = path.stat().st_size
    if found < size:
        raise StoreError(
            f"{path} has {found} bytes, but {size} were received: somebody or something has cut it.",
            hint="Delete the file and run the same command again: the server sends it once more, if it still has it.",
            path=str(path),
        )
    if found > size:
        with store_errors(path), open(path, "r+b", buffering=0) as file:
            file.truncate(size)
            # The event that closed the file, if there was one, was its last, and is gone.
            _change_flags(file.fileno(), lambda flags: flags | FLAG_IN_USE)


def _change_flags(descriptor: int, change: Callable[[int], int]) -> None:
    """Change the flags of a file's format description, which say whether the server still writes to the file."""
    flags = int.from_bytes(os.pread(descriptor, 2, FIRST_EVENT + _FLAGS), "little")
    os.pwrite(descriptor, change(flags).to_bytes(2, "little"), FIRST_EVENT + _FLAGS)


class ReceivedFile:
    """The file that is being received.

    Parameters
    ----------
    path
        Where it lies; a file that is there is gone on with.

    Attributes
    ----------
    end
        Bytes that came.
    sure
        Up to here the server said of an event that it ends there.
    synced
        Up to here it is durable: the end of a transaction.
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
        """Create a file with its first event; the server writes to it, and so it says that it is in use."""
        flags = int.from_bytes(format_event[_FLAGS : _FLAGS + 2], "little") | FLAG_IN_USE
        event = format_event[:_FLAGS] + flags.to_bytes(2, "little") + format_event[_FLAGS + 2 :]
        with store_errors(path):
            make_folder(path.parent)
            path.write_bytes(MAGIC + event)
            sync_folder(path.parent)
        return cls(path)

    def append(self, data: bytes | memoryview, sure: int) -> None:
        """Take whole events; the first `sure` bytes of them are known to stand at their place."""
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
        """Forget the events that nobody said the place of."""
        if self.end == self.sure:
            return
        with store_errors(self.path):
            os.ftruncate(self._descriptor, self.sure)
            os.lseek(self._descriptor, 0, os.SEEK_END)
        self.end = self.sure
        self._scanner.close()
        self._scanner = Scanner(self.path)

    def sync(self) -> Scan:
        """Make what came durable, and see where its last transaction ends."""
        self.scan = self._scanner.scan(self.sure)
        with store_errors(self.path):
            os.fdatasync(self._descriptor)
        self.synced = max(self.synced, self.scan.complete_end)
        return self.scan

    def mark_closed(self) -> None:
        """Say that the server does not write to it any more, as the server does in its own."""
        with store_errors(self.path):
            # What closed it is on the disk before the flag says so.
            os.fdatasync(self._descriptor)
            _change_flags(self._descriptor, lambda flags: flags & ~FLAG_IN_USE)

    def close(self) -> None:
        """Stop writing to it."""
        self._scanner.close()
        os.close(self._descriptor)
