"""Errors that binloom raises: one class per condition, all derived from `BinloomError`.

Every message names the finding, its location and the remedy. Context is kept as attributes. Errors
survive pickling, because they travel from Spark workers to the driver.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

EXIT_DONE = 0
EXIT_CHECK_FAILED = 1
EXIT_USAGE = 2
EXIT_SOURCE = 3


class BinloomError(Exception):
    """Root of all errors that binloom raises on purpose.

    Parameters
    ----------
    message
        The finding and its location.
    hint
        The remedy.
    **context
        Values that a program may read, such as `path`, `position`, `table`. They must be picklable.
    """

    exit_code = EXIT_USAGE

    def __init__(self, message: str, *, hint: str | None = None, **context: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.context = context

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["context"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.hint, self.context)


def _rebuild(kind: type[BinloomError], message: str, hint: str | None, context: dict[str, Any]) -> BinloomError:
    return kind(message, hint=hint, **context)


class UsageError(BinloomError):
    """The command line or a configuration file does not make sense."""


# --- the binlog itself ---


class BinlogError(BinloomError):
    """A binlog file cannot be read, or only in part."""

    exit_code = EXIT_SOURCE


class BinlogNotFoundError(BinlogError):
    """No file exists at that path."""

    exit_code = EXIT_USAGE


class BinlogNotReadableError(BinlogError):
    """The file or directory exists but cannot be read."""


class NotABinlogError(BinlogError):
    """The file is empty or does not start with a binlog's magic."""

    exit_code = EXIT_USAGE


class EncryptedBinlogError(BinlogError):
    """The file is encrypted by the server."""


def encrypted_binlog(path: object, position: int | None = None) -> EncryptedBinlogError:
    """Return the error for a file that MySQL encrypted as a whole, or that MariaDB encrypted from `position` on."""
    where, option, tool = "", "binlog_encryption=ON, magic fd 62 69 6e", "mysqlbinlog"
    if position is not None:
        where, option, tool = f" from position {position} on", "encrypt_binlog=ON", "mariadb-binlog"
    return EncryptedBinlogError(
        f"{path} is encrypted by its server{where} ({option}).",
        hint=f"Stream it from the server, which decrypts it: `{tool} --read-from-remote-server --raw`.",
        path=str(path),
        position=position,
    )


class UnsupportedBinlogVersionError(BinlogError):
    """The decoder does not support the file's format version."""


class ArchiveError(BinlogError):
    """An archive is damaged, or contains what binloom does not read."""


class SpillError(BinlogError):
    """A file that must be unpacked to be read cannot be unpacked: there is no room for it, or its bytes do not come."""


class CorruptBinlogError(BinlogError):
    """The bytes of an event are wrong. Everything before `position` is good."""


class TruncatedBinlogError(CorruptBinlogError):
    """The file ends inside an event."""


# --- sources ---


class SourceError(BinloomError):
    """A server or a directory cannot provide the required data."""

    exit_code = EXIT_SOURCE


class AccessRefusedError(SourceError):
    """The server refuses the user, or an action of the user."""


class SourceCheckError(SourceError):
    """The server's settings make its binlog unusable, such as binlog_format=STATEMENT."""


class BrokenStreamError(SourceError):
    """A replication connection broke, or delivered bytes that the server cannot have sent."""


class GapError(SourceError):
    """Following would skip a part of the binlog, because the server no longer has it."""


class SnapshotInputError(BinloomError):
    """The files of a schema snapshot are missing, malformed, or contradict each other."""


class SourceIdentityError(BinloomError):
    """A file or server is not the one this source had: it changed under its name, shrank, or is a second server."""

    exit_code = EXIT_SOURCE


# --- the store ---


class StoreError(BinloomError):
    """The warehouse or metastore cannot be used."""

    exit_code = EXIT_SOURCE


class PackagesMissingError(StoreError):
    """Packages of Python are missing, which only some commands need: see `ingest.extras`."""


class JavaMissingError(StoreError):
    """Spark needs Java 17 or newer and none was found."""


class MetastoreLockedError(StoreError):
    """Another process holds the embedded metastore."""


class IngestInProgressError(StoreError):
    """Another ingest of the same source is running."""


class UnknownSourceError(BinloomError):
    """No source of that name has been landed."""


def unknown_source(source_id: str, known: Iterable[str], home: Path) -> UnknownSourceError:
    """Return the error for an unknown source; its hint names the known sources."""
    names = ", ".join(sorted(known))
    return UnknownSourceError(
        f"There is no source {source_id!r} in {home}.",
        hint=f"There are: {names}." if names else empty_home(home, source_id),
        source_id=source_id,
    )


def empty_home(home: Path, source_id: str = "NAME") -> str:
    """Return what to do about a home in which nothing was landed, or that does not exist: its name may be mistyped."""
    found = "Nothing is landed in" if home.is_dir() else "There is no folder"
    return (
        f"{found} {home} (BINLOOM_HOME). Set BINLOOM_HOME to the home that you mean, or begin with:"
        f" binloom ingest --source {source_id} --binlog-dir DIR --all"
    )
