"""`binloom top`: print which tables, transactions, connections and rows changed most, and when."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from binloom.commands.output import (
    Format,
    ReportFormat,
    console,
    human,
    human_bytes,
    print_line,
    print_rows,
    print_table,
    say,
    waiting,
)
from ingest.binlog.filters import TableFilter
from ingest.errors import EXIT_DONE, UsageError
from ingest.words import capitalized, counted
from recover.questions.top import SPIKE, Step, Top, bars
from recover.selection.catalog import unknown_table
from recover.selection.condition import is_filtered_table
from recover.selection.filters import Filters
from recover.sources.cluster.thrift import is_cluster_target

if TYPE_CHECKING:
    from binloom.answers.opening import Inputs
    from recover.questions.activity import Activity

_PLOT_WIDTH: Final = 72
_PLOT_HEIGHT: Final = 4


@dataclass(frozen=True)
class Wanted:
    """What a person wants to see."""

    filters: Filters
    step: Step
    limit: int

    def activity(self) -> "Activity":
        """Return sums of nothing yet."""
        from recover.questions.activity import Activity

        tables = TableFilter.of(self.filters.schemas, self.filters.tables)
        return Activity(self.step, tables, self.filters.since, self.filters.until, self.limit)

    def check_tables(self, activity: "Activity") -> None:
        """Refuse the name of a table that the log does not have.

        Raises
        ------
        UnknownNameError
            A filter names such a table.
        """
        known = activity.tables | activity.removals.tables
        for pattern in self.filters.tables:
            only = Filters(schemas=self.filters.schemas, tables=(pattern,))
            if not any(is_filtered_table(only, *table) for table in known):
                raise unknown_table(pattern, known)


def print_top_of_files(inputs: "Inputs", wanted: Wanted, format: ReportFormat) -> int:
    """Print the activity in binlog files; return the exit code, that of damage if a file is damaged."""
    from binloom.answers.lacks import gap_notes, gaps_of_scans, without_end
    from binloom.answers.named_files import binlogs
    from binloom.answers.opening import origin
    from recover.sources.activity.of_files import count_files

    named = binlogs(inputs.files, say)
    with waiting("reading the files"):
        found = origin(inputs, wanted.filters.sources, named, say)
        read = count_files(wanted.activity, named, wanted.filters, **found, index=inputs.index)
    if not read.problems:
        wanted.check_tables(read.activity)
    for note in read.notes:
        say(note)
    notes = [*gap_notes(gaps_of_scans(read.scans, wanted.filters, read.unread))]
    if read.open_transaction is not None:
        notes.append(without_end(read.open_transaction))
    _print(read.activity.answer([*map(capitalized, notes), *read.lacks]), format)
    sys.stdout.flush()
    for problem in read.problems:
        say(str(problem))
    return max((problem.exit_code for problem in read.problems), default=EXIT_DONE)


def print_top_of_home(home: Path, wanted: Wanted, every: float | None, format: ReportFormat) -> int:
    """Print the activity in what has landed, once or again and again until a signal; return the exit code."""
    from recover.sources.activity.of_home import ActivityOfHome
    from recover.sources.home.landed_marts import has_segments

    if is_cluster_target():
        raise UsageError(
            "top reads what has landed in a home, and does not ask a cluster.",
            hint="Unset BINLOOM_TARGET, or give binlog files with --files.",
        )
    if every is None and not has_segments(home):
        raise UsageError("Nothing has landed in this home yet.", hint="Land a log, or give files with --files.")
    activity = wanted.activity()
    landed = ActivityOfHome(home, activity, wanted.filters.sources)

    def answer() -> Top:
        landed.add_new()
        return activity.answer(landed.lacks())

    if every is None:
        with waiting("reading what has landed"):
            top = answer()
        wanted.check_tables(activity)
        _print(top, format)
    else:
        _repeat(answer, every, format)
    return EXIT_DONE


def _repeat(answer: Callable[[], Top], every: float, format: ReportFormat) -> None:
    """Print an answer again and again until SIGINT or SIGTERM; a terminal shows only the last one."""
    screen = console()
    is_redrawn = format is ReportFormat.TEXT and screen.is_terminal
    with _end_by_signal() as ended, screen.screen() if is_redrawn else nullcontext():
        while not ended.is_set():
            top = answer()
            if is_redrawn:
                screen.clear()
            _print(top, format)
            sys.stdout.flush()
            ended.wait(every)


@contextmanager
def _end_by_signal() -> Iterator[threading.Event]:
    """Give the event that SIGINT or SIGTERM sets."""
    ended = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in numbers}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print(top: Top, format: ReportFormat) -> None:
    if format is ReportFormat.JSON:
        answer = asdict(top)
        print_rows(list(answer), [list(answer.values())], Format.JSON)
        return
    first, last = human(top.first_at), human(top.last_at)
    print_line(
        f"{counted(top.changes, 'change')} in {counted(top.transactions, 'transaction')}, {human_bytes(top.bytes)}"
        + (f", {first} to {last} UTC" if first else "")
    )
    _print_timeline(top)
    _print_list(_rest("tables", len(top.tables), top.tables_in_all), top.tables)
    _print_list("biggest transactions", top.biggest)
    _print_list("longest transactions", top.longest)
    title = "statements that took tables, rows or columns away"
    _print_list(_rest(title, len(top.removals), top.removals_in_all, "last "), top.removals)
    _print_list("connections", top.threads)
    _print_list("rows that are written again and again", top.hot_rows)
    if top.without_key:
        print_line()
        print_line(f"tables without a primary key: {', '.join(top.without_key)}")
    if top.lacks:
        print_line()
    for sentence in top.lacks:
        print_line(sentence)


def _print_timeline(top: Top) -> None:
    if len(top.timeline) < 2:
        return
    print_line()
    print_line(f"changes by {top.step}; the median of those with changes is {top.median_changes:,.0f}")
    for line in bars(top.timeline, top.step, _PLOT_WIDTH, _PLOT_HEIGHT):
        print_line(f"  {line}".rstrip())
    print_line(f"  {human(top.timeline[0].at)} to {human(top.timeline[-1].at)} UTC")
    _print_list(f"spikes: at least {SPIKE} times the median", top.spikes)


def _print_list(title: str, rows: Sequence[Any]) -> None:
    if rows:
        print_line()
        columns = [one.name for one in fields(rows[0])]
        print_table(columns, [[getattr(row, column) for column in columns] for row in rows], title)


def _rest(title: str, shown: int, in_all: int, which: str = "") -> str:
    return title if shown == in_all else f"{title}: {which}{shown} of {in_all:,}"
