"""How files are landed, and what an ingest came to."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ingest.errors import EXIT_DONE
from ingest.landing.plan import SEGMENT_BYTES, FileProblem

if TYPE_CHECKING:
    from ingest.binlog import TableFilter

# Called with the bytes landed so far, the bytes to land as far as known, and what is being done.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class IngestOptions:
    """What a person can say about an ingest.

    Attributes
    ----------
    tables
        Which tables' rows to take; None for all. Segments landed with one filter are not landed again
        with another.
    new_epoch
        That a series of files which starts over, or a server that comes back, is meant.
    segment_bytes
        About how many bytes of a file one task takes.
    skip_bad_checksum
        That events whose checksum is wrong are passed over, each with a row in `unsupported_events`,
        instead of ending what is landed of their file.
    again
        Land what dbt lists in `segments_to_land_again`, with the hints that `table_versions` gives, and nothing
        of other files.
    """

    tables: "TableFilter | None" = None
    new_epoch: bool = False
    segment_bytes: int = SEGMENT_BYTES
    skip_bad_checksum: bool = False
    again: bool = False


@dataclass
class IngestResult:
    """What an ingest came to.

    Attributes
    ----------
    source_id, run_id
        The source, and the identifier of this run in `segments`.
    files
        Number of files that were given and are binlogs.
    files_skipped
        Number of those that were wholly landed already, and unchanged.
    segments, bytes, row_events, transactions
        What was landed by this run.
    problems
        Files, or parts of files, that could not be landed, each with its reason.
    warnings
        Sentences that a person should read once, such as that names cannot be bound yet.
    seconds
        How long it took.
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
        """Exit code for the command: that of the gravest problem, 0 without any."""
        return max((problem.error.exit_code for problem in self.problems), default=EXIT_DONE)


def silent(done: int, known: int, word: str) -> None:
    """Tell nobody how far it is."""


def filter_text(tables: "TableFilter | None") -> str | None:
    """Return a filter as it is recorded in `segments`, None when all tables are taken."""
    if tables is None:
        return None
    parts = {"schemas": tables.schemas, "tables": tables.tables, "exclude_tables": tables.exclude_tables}
    return "; ".join(f"{name}: {', '.join(sorted(patterns))}" for name, patterns in parts.items() if patterns) or None


def filter_words(text: str | None) -> str:
    """Say in a sentence which tables a filter of `segments` takes."""
    return "all tables" if text is None else f"the filter {text}"
