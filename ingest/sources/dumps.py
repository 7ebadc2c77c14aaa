"""A dump that a person names: a file of mysqldump, or a folder of mydumper or MySQL Shell."""

from pathlib import Path

from ingest.binlog import TableFilter
from ingest.errors import SnapshotInputError, UsageError
from ingest.sources.dump import Dump
from ingest.sources.dump_file import SqlDump
from ingest.sources.dump_folder import DumpFolder
from ingest.sources.mydumper import METADATA, MydumperDump
from ingest.sources.shell_dump import DESCRIPTION, ShellDump


def open_dump(
    path: Path,
    schema: str | None = None,
    wanted: TableFilter | None = None,
    *,
    position: tuple[str, int] | None = None,
    with_rounded: bool = False,
) -> Dump:
    """Return the dump at a path. The parameters are those of `SqlDump`.

    Raises
    ------
    SnapshotInputError
        There is no dump, or it does not show its rows.
    UsageError
        A schema is given for a dump that names its schemas.
    """
    if not path.is_dir():
        return SqlDump(path, schema, wanted, position=position, with_rounded=with_rounded)
    folder = DumpFolder.of(path)
    if schema is not None:
        raise UsageError(f"{path} is a folder, which names its schemas.", hint="Leave --schema out.")
    if DESCRIPTION in folder:
        return ShellDump(folder, wanted, position=position, with_rounded=with_rounded)
    if METADATA in folder or f"{METADATA}.partial" in folder:
        return MydumperDump(folder, wanted, position=position, with_rounded=with_rounded)
    raise SnapshotInputError(
        f"{path} is not a dump: it has neither {METADATA}, as of mydumper, nor {DESCRIPTION}, as of MySQL Shell.",
        hint="Give the folder that the program has written, or a file of mysqldump.",
        path=str(path),
    )
