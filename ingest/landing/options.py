"""Options and results of an ingest."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.errors import EXIT_DONE
from ingest.landing.plan import SEGMENT_BYTES, FileProblem

if TYPE_CHECKING:
    from ingest.binlog import TableFilter

# Called with the bytes landed so far, the bytes to land as far as known, and a word for the current step.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class IngestOptions:
    """Options of an ingest.

    Attributes
    ----------
    tables
        Filter of the tables whose rows are landed; None for all tables. Segments that are already landed are not
        landed again with another filter.
    new_epoch
        Whether a file series that starts over, or a server that comes back, is intended.
    segment_bytes
        Approximate number of bytes of a file that one task lands.
    skip_bad_checksum
        Whether to skip events whose checksum is wrong, each with a row in `unsupported_events`. Otherwise the landing
        of a file ends at such an event.
    again
        Whether to land only the segments that dbt lists in `segments_to_land_again`, with the hints from
        `table_versions`.
    processes
        Number of processes that decode, where the settings name no cluster; None: as many as the machine has cores,
        and only this one for few bytes.
    masks
        File with the masks; None: the file that `BINLOOM_MASKS` names, or `masks.yml` in the home, if there is one.
    """

    tables: "TableFilter | None" = None
    new_epoch: bool = False
    segment_bytes: int = SEGMENT_BYTES
    skip_bad_checksum: bool = False
    again: bool = False
    processes: int | None = None
    masks: Path | None = None


@dataclass
class IngestResult:
    """Result of an ingest.

    Attributes
    ----------
    source_id, run_id
        The source, and the identifier of this run in `segments`.
    files
        Number of given files that are binlogs.
    files_skipped
        Number of those files that were already fully landed, and unchanged.
    segments, bytes, row_events, transactions
        Numbers of segments, bytes, row events and transactions that this run landed.
    problems
        Files, or parts of files, that could not be landed, each with its reason.
    warnings
        Sentences to show to the user once, for example that column names cannot be bound yet.
    seconds
        Duration.
    """

    source_id: str
    run_id: str
    files: int = 0
    files_skipped: int = 0
    segments: int = 0
    bytes: int = 0
    row_events: int = 0
    transactions: int = 0
    problems: list[FileProblem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """Exit code for the command: the highest exit code of all problems, 0 without problems."""
        return max((problem.error.exit_code for problem in self.problems), default=EXIT_DONE)


def silent(done: int, known: int, word: str) -> None:
    """Report no progress."""


def filter_text(tables: "TableFilter | None") -> str | None:
    """Return a filter as the text that is recorded in `segments`, None for all tables."""
    if tables is None:
        return None
    parts = {"schemas": tables.schemas, "tables": tables.tables, "exclude_tables": tables.exclude_tables}
    return "; ".join(f"{name}: {', '.join(sorted(patterns))}" for name, patterns in parts.items() if patterns) or None


def filter_words(text: str | None) -> str:
    """Return words for a sentence on the tables that a filter of `segments` takes."""
    return "all tables" if text is None else f"the filter {text}"
