"""The landed source that `expire` and `erase` change."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from binloom.commands.output import say
from ingest.errors import UsageError
from ingest.warehouse.home import binloom_home
from ingest.warehouse.record import SourceRecord
from ingest.words import counted
from recover.sources.cluster.thrift import is_cluster_target
from recover.sources.log import VIEWS, Log
from recover.timeline.baselines import VIEWS as BASELINE_VIEWS
from recover.timeline.table_log import MARTS

if TYPE_CHECKING:
    from ingest.landing.held import StreamLanding


@dataclass(frozen=True)
class ChangedSource:
    """The record of a source, and its landing, which holds the lock; None in a dry run."""

    record: SourceRecord
    landing: "StreamLanding | None"


def home_of(source: str, refusal: str) -> Path:
    """Return the home where a source is landed.

    Parameters
    ----------
    refusal
        A sentence for a cluster, whose warehouse these commands do not change.

    Raises
    ------
    UsageError
        The target is a cluster, or no source has this name.
    """
    from ingest.follow.overview import status

    if is_cluster_target():
        raise UsageError(refusal, hint="Run it where the home of the landed files is, without BINLOOM_TARGET=thrift.")
    home = binloom_home().absolute()
    status(source, home)  # Raises an error for an unknown source.
    return home


@contextmanager
def changed_source(source: str, home: Path, *, apply: bool) -> Iterator[ChangedSource]:
    """Give a source: to change it with `apply`, else only to read it."""
    from ingest.landing.held import StreamLanding

    if not apply:
        yield ChangedSource(SourceRecord.load(source, home), None)
        return
    with StreamLanding(source, home) as landing:
        yield ChangedSource(landing.record, landing)


def whole_log(home: Path, spill: Path) -> Log:
    """Return the log of a home with all that a state needs; a folder takes what does not fit into memory."""
    return Log.of_warehouse(home, dict.fromkeys((*VIEWS, *MARTS, *BASELINE_VIEWS)), spill=spill)


def delete_leftovers(landing: "StreamLanding") -> None:
    """Delete files of expired segments, and baselines before the beginning of the log once no mart lists them."""
    from ingest.landing.expiry import delete_baselines, delete_expired
    from ingest.warehouse.expired import expired_baselines

    expired = set(expired_baselines(landing.home))
    # Nothing is deleted if the marts cannot be read.
    used = expired & _listed_baselines(landing.home) if expired else set()
    segments, baselines = delete_expired(landing), 0
    if expired:
        baselines = delete_baselines(landing, (expired - used).__contains__)
        if left := len(used):
            commands = "`binloom expire --apply` or `binloom erase --apply`"
            say(f"{left} older baselines are deleted by the first {commands} after the next build.")
    if segments or baselines:
        say(f"the files of {counted(segments, 'segment')} and {counted(baselines, 'older baseline')} are deleted.")


def _listed_baselines(home: Path) -> set[str]:
    """Return the baselines that the marts list."""
    with tempfile.TemporaryDirectory(prefix="binloom-expire-") as spill:
        connection = whole_log(home, Path(spill)).connection
        return {row[0] for row in connection.execute("select distinct baseline_id from binloom.baselines").fetchall()}
