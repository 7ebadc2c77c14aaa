"""The activity in binlog files, for `top`: each file is walked, then decoded once; no row is kept."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingest.errors import BinloomError
from ingest.landing.bindings import TableNames
from recover.questions.activity import Activity, Key, KnownMap, Place
from recover.sources.decoding import damage, offsets
from recover.sources.files import SOURCE, definitions_of_log, placed, scans_of

if TYPE_CHECKING:
    from ingest.binlog import Scan, SchemaHints
    from ingest.binlog.byte_files import LogPath
    from ingest.sources.directory import BinlogPath
    from ingest.sources.snapshot import SchemaSnapshot


def count_files(
    activity: Activity,
    paths: "Sequence[LogPath]",
    *,
    source_id: str | None = None,
    snapshot: "SchemaSnapshot | None" = None,
    home: Path | None = None,
) -> tuple[list[BinloomError], list[str]]:
    """Add the whole transactions of files; return the damage of files, and in sentences what else is missing.

    Parameters
    ----------
    activity
        What is added to.
    paths
        The files of one log, in any order.
    source_id, snapshot, home
        As in `recover.sources.files.decode`.

    Raises
    ------
    BinlogError
        A file does not exist or is not a binlog.
    UsageError
        The files are not of one log.
    """
    source = source_id or SOURCE
    files = placed(paths)
    scans = scans_of(files)
    history = definitions_of_log(source, snapshot, home)
    for file in files:
        history.add_scan(0, file.name, scans[file])
    names, hints = TableNames(source, history, history.named_versions()), history.hints(0)
    problems: list[BinloomError] = []
    for file in files:
        try:
            _count(activity, file, scans[file], names, hints, source)
        except BinloomError as error:
            problems.append(error)
        if scans[file].defect is not None:
            problems.append(damage(file, scans[file]))
    last = scans[files[-1]]
    lacks = [f"The log goes on after {files[-1].name}, in files that were not given."] if last.is_closed else []
    return problems, [*lacks, *(f"Rows are missing: {problem.message}" for problem in problems)]


def _count(
    activity: Activity,
    file: "BinlogPath",
    scan: "Scan",
    names: TableNames,
    hints: "SchemaHints | None",
    source: str,
) -> None:
    from ingest.binlog import open_binlog
    from ingest.ddl.dml_batches import TargetReader

    place, known = Place(source, 0, file.name), {}
    targets = TargetReader(scan.format.flavor, scan.format.server_version)
    for kind, batch in open_binlog(file.path, hints=hints, end=scan.complete_end).batches():
        match kind:
            case "table_maps":
                for table_map in batch.to_pylist():
                    known[table_map["table_map_id"]] = known_map(table_map, names, 0, file.sequence or 0)
            case "row_events":
                activity.add_rows(batch, place, known.__getitem__)
            case "transactions":
                activity.add_transactions(batch, place)
            case "statements":
                activity.add_statement_targets(targets.column(batch))
            case "unsupported_events":
                activity.add_undecoded(batch)


def known_map(table_map: Mapping[str, Any], names: TableNames, epoch: int, sequence: int) -> KnownMap:
    """Return the table of a table map, and its keys in the file with this number.

    The key of a row is not known where the row would be in quarantine: its name or its value is uncertain.
    """
    found = []
    for binding in names.bindings(table_map):
        first, end = (offsets(one, sequence, epoch) for one in (binding.first, binding.end))
        if first >= end:
            continue
        is_certain = binding.version is not None and binding.reason is None and not table_map["unknown_hints"]
        found.append(Key(first, end, binding.version.primary_key_ordinals if binding.version and is_certain else None))
    return KnownMap(table_map["schema_name"], table_map["table_name"], found)
