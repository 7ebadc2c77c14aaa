"""Files that cannot expire yet, because later files or commands need them."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ingest.errors import UsageError
from ingest.landing.expiry import FilePlace, OldFile, keep_from
from ingest.warehouse.files import read_rows, read_table
from ingest.warehouse.segments import log_place
from ingest.warehouse.tables import BASELINES, SCHEMA_COLUMNS, SCHEMA_SNAPSHOTS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_HARMLESS: Final = ("truncate_table", "truncate_partition", "create_database")


class StaleMartsError(UsageError):
    """The marts lack rows that have landed."""


def keep_needed(connection: "DuckDBPyConnection", source_id: str, files: Sequence[OldFile], home: Path) -> None:
    """Keep the files that later files or commands need, and all files after them.

    Parameters
    ----------
    connection
        It has the marts `transactions` and `schema_changes`.
    source_id
        The source.
    files
        All files that have not expired, oldest first.
    """
    _keep_unshown_definitions(connection, source_id, files, home)
    before = len(files) + 1
    # A file that stays may have the end of a transaction that began in an earlier one.
    while len(expiring(files)) < before:
        before = len(expiring(files))
        _keep_open_transactions(connection, source_id, files)


def expiring(files: Iterable[OldFile]) -> list[OldFile]:
    """Return the files that expire."""
    return [file for file in files if file.why_kept is None]


def _keep_open_transactions(connection: "DuckDBPyConnection", source_id: str, files: Sequence[OldFile]) -> None:
    by_place = {file.place: file for file in files}
    spans = sorted(_prepared(connection, source_id), reverse=True)
    for begin, end in spans:
        file, last = by_place.get(begin), expiring(files)[-1:]
        if file is None or file.why_kept is not None:
            continue
        if end is None:
            keep_from(files, file, "a transaction in it is prepared (XA) and has not ended")
        elif last and end > last[0].place:
            keep_from(files, file, "a transaction that is prepared in it (XA) ends in a file that is kept")
    for place in _ends_open(connection, source_id):
        file, last = by_place.get(place), expiring(files)[-1:]
        if file is not None and last and last[0].place == place:
            keep_from(files, file, "its last transaction has no end in it")


def _prepared(connection: "DuckDBPyConnection", source_id: str) -> Iterator[tuple[FilePlace, FilePlace | None]]:
    """Yield the files in which XA transactions were prepared and ended; the later may be missing."""
    rows = connection.execute(
        """select prepared.epoch, prepared.file_sequence, ending.epoch, ending.file_sequence
        from binloom.transactions as prepared
        left join binloom.transactions as ending on prepared.xa_end_transaction_id = ending.transaction_id
        where prepared.source_id = $source
            and (prepared.xa_end_transaction_id is not null or prepared.outcome = 'xa_prepare')""",
        {"source": source_id},
    ).fetchall()
    for epoch, sequence, end_epoch, end_sequence in rows:
        yield (epoch, sequence), None if end_epoch is None else (end_epoch, end_sequence)


def _ends_open(connection: "DuckDBPyConnection", source_id: str) -> list[FilePlace]:
    rows = connection.execute(
        """select epoch, file_sequence from binloom.transactions where source_id = $source
        group by all having max_by(outcome, start_pos) = 'none'""",
        {"source": source_id},
    ).fetchall()
    return [(epoch, sequence) for epoch, sequence in rows]


def _keep_unshown_definitions(
    connection: "DuckDBPyConnection", source_id: str, files: Sequence[OldFile], home: Path
) -> None:
    """Keep statements that changed a table since the newest snapshot: an undo must know that it is out of date."""
    heads = [row for row in read_rows(SCHEMA_SNAPSHOTS, home, source_id=source_id) if row["origin"] != "binlog"]
    newest = max(heads, key=lambda row: (row["taken_at"], row["snapshot_id"]), default=None)
    if newest is None or newest["binlog_file"] is None or newest["binlog_pos"] is None:
        return
    columns = read_table(SCHEMA_COLUMNS, home, ["schema_name", "table_name"], snapshot_id=newest["snapshot_id"])
    shown = {(row["schema_name"], row["table_name"]) for row in columns.to_pylist()}
    place = (newest["epoch"] or 0, *log_place(newest["binlog_file"], newest["binlog_pos"]))
    rows = connection.execute(
        """select epoch, file_sequence, start_pos, binlog_file, statement_type, schema_name, table_name, actions
        from binloom.schema_changes where source_id = $source order by epoch, file_sequence, start_pos""",
        {"source": source_id},
    ).fetchall()
    by_place = {file.place: file for file in files}
    for epoch, sequence, pos, name, statement, schema, table, actions in rows:
        is_shown = (epoch, sequence, pos) < place or (schema, table) not in shown
        if not is_shown and not all(action.startswith(_HARMLESS) for action in actions):
            file = by_place.get((epoch, sequence))
            if file is not None and file.why_kept is None:
                why = (
                    f"no schema snapshot shows the {statement} of {schema}.{table} at {name}:{pos};"
                    " `binloom snapshot` lands one"
                )
                keep_from(files, file, why)
            return


def assert_built(
    connection: "DuckDBPyConnection",
    source_id: str,
    files: Sequence[OldFile],
    home: Path,
    *,
    with_carried: bool = False,
) -> None:
    """Refuse marts that lack rows of some files, or baselines.

    Parameters
    ----------
    files
        The files whose rows are needed.
    with_carried
        Whether the baselines are needed, too, that `binloom expire` landed.

    Raises
    ------
    StaleMartsError
        Something has landed since the last build.
    """
    wanted = {
        (file.epoch, file.binlog_file, state.segment_start): (state.transactions, _micros(state.recorded_at))
        for file in files
        for state in file.states
        if state.status == "completed" and state.transactions
    }
    rows = connection.execute(
        """select epoch, binlog_file, segment_start, count(*), epoch_us(max(landed_at)) from binloom.transactions
        where source_id = $source group by all""",
        {"source": source_id},
    ).fetchall()
    built = {tuple(row[:3]): tuple(row[3:]) for row in rows}
    counted = _row_events(connection, source_id)
    stale = [key[1] for key, facts in wanted.items() if built.get(key) != facts]
    stale += [file.binlog_file for file in files if counted.get((file.epoch, file.binlog_file), 0) != file.row_events]
    known = {row[0] for row in connection.execute("select distinct baseline_id from binloom.baselines").fetchall()}
    landed = [
        row for row in read_rows(BASELINES, home, source_id=source_id) if with_carried or row["origin"] != "binlog"
    ]
    unbuilt = any(
        row["baseline_id"] not in known
        and row["binlog_file"] is not None
        and log_place(row["binlog_file"], 0) >= log_place(files[0].binlog_file, 0)
        for row in landed
    )
    if stale or unbuilt:
        what = f"file {stale[0]}" if stale else "a baseline"
        raise StaleMartsError(
            f"The marts are older than the landed rows of {what} of source {source_id}.",
            hint="Run `binloom build`, then run this command again.",
        )


def _row_events(connection: "DuckDBPyConnection", source_id: str) -> dict[tuple[int, str], int]:
    rows = connection.execute(
        """select epoch, binlog_file, sum(rows) from (
            select epoch, binlog_file, count(*) as rows from binloom.row_changes where source_id = $source group by all
            union all
            select epoch, binlog_file, count(*) as rows from binloom.quarantined_row_events
            where source_id = $source and row_ordinal is not null group by all
        ) group by all""",
        {"source": source_id},
    ).fetchall()
    return {(epoch, name): int(rows) for epoch, name, rows in rows}


def _micros(moment: Any) -> int:
    return int(moment.timestamp()) * 1_000_000 + int(moment.microsecond)
