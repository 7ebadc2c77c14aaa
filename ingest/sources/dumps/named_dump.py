"""A dump that a person names: a file of mysqldump, or a folder of mydumper or MySQL Shell, wherever it is."""

from pathlib import Path, PurePosixPath

from ingest.binlog import TableFilter
from ingest.binlog.byte_files import LogPath
from ingest.errors import BinlogError, BinlogNotFoundError, SnapshotInputError, UsageError
from ingest.sources.dumps.dump import Dump
from ingest.sources.dumps.dump_file import SqlDump
from ingest.sources.dumps.dump_folder import DumpFolder
from ingest.sources.dumps.mydumper import METADATA, MydumperDump
from ingest.sources.dumps.shell_dump import DESCRIPTION, ShellDump
from ingest.sources.files.compressed import without_suffix
from ingest.sources.files.named import first_bytes, opened_once, uncompressed
from ingest.sources.files.objects import folder, objects
from ingest.sources.files.tar import HEADER_SIZE, files_of_tar, is_tar

_MARKS = (DESCRIPTION, METADATA, f"{METADATA}.partial")


def open_dump(
    named: Path | str,
    schema: str | None = None,
    wanted: TableFilter | None = None,
    *,
    position: tuple[str, int] | None = None,
    with_rounded: bool = False,
) -> Dump:
    """Return the dump at a path, at the address of an object or of a folder of objects, or in an archive.

    The other parameters are those of `SqlDump`.

    Raises
    ------
    SnapshotInputError
        There is no dump, or it does not show its rows.
    UsageError
        A schema is given for a dump that names its schemas.
    """
    try:
        found = _found(named)
    except BinlogError as error:
        raise SnapshotInputError(
            f"The dump cannot be read. {error.message}", hint=error.hint, path=str(named)
        ) from error
    if not isinstance(found, DumpFolder):
        return SqlDump(found, schema, wanted, position=position, with_rounded=with_rounded)
    if schema is not None:
        raise UsageError(f"{found.place} is a folder, which names its schemas.", hint="Leave --schema out.")
    if DESCRIPTION in found:
        return ShellDump(found, wanted, position=position, with_rounded=with_rounded)
    if any(mark in found for mark in _MARKS):
        return MydumperDump(found, wanted, position=position, with_rounded=with_rounded)
    raise SnapshotInputError(
        f"{found.place} is not a dump: it has neither {METADATA}, as of mydumper, nor {DESCRIPTION}, as of MySQL"
        " Shell.",
        hint="Give the folder that the program has written, or a file of mysqldump.",
        path=found.place,
    )


def _found(named: Path | str) -> DumpFolder | LogPath:
    """Return the file or the folder of a dump."""
    if isinstance(named, str):
        return _of_objects(named)
    return DumpFolder.of(named) if named.is_dir() else _in_file(opened_once(named))


def _of_objects(address: str) -> DumpFolder | LogPath:
    listed = objects(address)
    if len(listed) == 1 and not address.partition("?")[0].endswith("/"):
        (file,) = listed
        if isinstance(file, Path):
            return _found(file)
        try:
            return _in_file(file)
        except BinlogNotFoundError:
            # The address of a folder may lack its slash.
            try:
                listed = objects(folder(address))
            except BinlogNotFoundError:
                listed = []
            if not listed:
                raise
    # The text of a file has no credentials of the address.
    return DumpFolder(str(listed[0]).rpartition("/")[0], {file.name: file for file in listed})


def _in_file(file: LogPath) -> DumpFolder | LogPath:
    """Return a file, or the dump in it if it is an archive."""
    try:
        plain = uncompressed(file)
        head = first_bytes(plain, HEADER_SIZE)
    except BinlogNotFoundError:
        if isinstance(file, Path):
            # Reading it tells the reason.
            return file
        raise
    if not is_tar(head):
        return file
    members = files_of_tar(plain)
    marks = {PurePosixPath(path).parent for path in members if without_suffix(PurePosixPath(path).name) in _MARKS}
    if len(marks) > 1:
        raise UsageError(f"{file} has several dumps.", hint="Unpack it, and give the folder of one.")
    if marks:
        (at,) = marks
        inside = {part.name: part for path, part in members.items() if PurePosixPath(path).parent == at}
        return DumpFolder(f"{file}/{at}" if str(at) != "." else str(file), inside)
    if len(members) != 1:
        raise UsageError(
            f"{file} is an archive of {len(members)} files, and no dump of mydumper or MySQL Shell is among them.",
            hint="Unpack it, and give the file of mysqldump.",
        )
    return next(iter(members.values()))
