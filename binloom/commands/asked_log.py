"""The log that a command asks: the warehouse or the cluster, or the files on its command line."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from ingest.errors import UsageError
from ingest.warehouse.home import binloom_home
from recover.selection.filters import Filters
from recover.sources.cluster import is_cluster_target
from recover.sources.log import Log


def asked_log(filters: Filters, files: Sequence[Path] | None, more: Sequence[Path] | None, names: Path | None) -> Log:
    """Return the log of the warehouse, or of files that are decoded now.

    Parameters
    ----------
    filters
        Filters of the row changes; of files, only these rows are decoded.
    files, more
        Files of `--files`, and the words after it that are not options: a shell puts them there for a pattern.
    names
        Folder of a schema snapshot with names that the files do not contain.

    Raises
    ------
    UsageError
        Options that do not fit each other.
    """
    if not files:
        if more:
            raise UsageError(f"{more[0]} is not an option of this command.", hint="Give binlog files with --files.")
        if names is not None:
            raise UsageError("--snapshot-dir names the columns of files.", hint="Give it with --files.")
        return Log.of_cluster() if is_cluster_target() else Log.of_warehouse(binloom_home())
    if len(filters.sources) > 1:
        raise UsageError("Files belong to one source.", hint="Give --source once, or not at all.")
    snapshot = None
    if names is not None:
        from ingest.sources.snapshot_files import read_snapshot_dir

        snapshot = read_snapshot_dir(names)
    source = filters.sources[0] if filters.sources else None
    home = binloom_home() if source is not None and snapshot is None else None
    return Log.of_files([*files, *(more or ())], filters, source_id=source, snapshot=snapshot, home=home)


def asked_marts(views: Iterable[tuple[str, str]]) -> Log:
    """Return the log of the warehouse with some marts, or the log of the cluster."""
    return Log.of_cluster() if is_cluster_target() else Log.of_warehouse(binloom_home(), views)
