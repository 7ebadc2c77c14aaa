"""Whether a connection id of a selection stands for more than one connection."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ingest.words import counted
from recover.notes import Note
from recover.selection.condition import Selection
from recover.sources.home.marts import SERVER_STARTS
from recover.sources.log import Log

_FILE: Final = ("source_id", "epoch", "coalesce(file_sequence, 0) as file_sequence", "binlog_file")


@dataclass(frozen=True, slots=True, order=True)
class _File:
    source_id: str
    epoch: int
    sequence: int
    name: str = field(compare=False)


def reused_ids(log: Log, selection: Selection) -> Iterator[Note]:
    """Yield which filtered ids select changes of several servers, or from before and after a start of their server.

    Each server counts its connections, and begins with 1 again when it starts.
    """
    if not selection.filters.threads:
        return
    servers = defaultdict[int, set[tuple[str, int]]](set)
    files = defaultdict[int, set[_File]](set)
    for thread, server, *place in log.rows(selection.query("thread_id", "server_id", *_FILE).distinct()):
        file = _File(*place)
        servers[thread].add((file.source_id, server))
        files[thread].add(file)
    several = sorted(thread for thread in files if len(servers[thread]) > 1 or len(files[thread]) > 1)
    starts = sorted(_first_files(log)) if several else []
    for thread in several:
        if len(servers[thread]) > 1:
            named = ", ".join(f"server_id {server} in {source}" for source, server in sorted(servers[thread]))
            yield Note(
                f"--thread {thread} selects connections of several servers, and each server counts its own: {named}."
                " Choose one with --source, or with --since and --until."
            )
            continue
        begun = starts[bisect_right(starts, min(files[thread])) : bisect_right(starts, max(files[thread]))]
        if begun:
            more = f" and {counted(len(begun) - 1, 'later file')}" if len(begun) > 1 else ""
            yield Note(
                f"--thread {thread} may select several connections: the server started again at the beginning of"
                f" {begun[0].name}{more}, and counts connections from 1 after each start."
                " Choose one with --since and --until."
            )


def _first_files(log: Log) -> Iterator[_File]:
    """Yield the first file after each start of a server: only these tell when they were created."""
    from sqlglot import exp

    from ingest.warehouse.files import read_rows
    from ingest.warehouse.tables import BINLOG_FILES

    if log.is_landed and log.home is not None:
        columns = ["source_id", "epoch", "file_sequence", "binlog_file", "created_at", "is_relay_log"]
        places = {
            (row["source_id"], row["epoch"], row["file_sequence"] or 0, row["binlog_file"])
            for row in read_rows(BINLOG_FILES, log.home, columns)
            if row["created_at"] is not None and not row["is_relay_log"]
        }
        yield from (_File(*place) for place in places)
    else:
        query = exp.select(*_FILE)
        on_cluster = query.from_("binloom.binlog_files").where("created_at is not null", "not is_relay_log")
        query = on_cluster if log.is_landed else query.from_(".".join(SERVER_STARTS))
        yield from (_File(*place) for place in log.rows(query))
