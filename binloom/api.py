"""Questions to a log from a script or a notebook: what the commands ask, as typed objects that say what they lack.

Each function asks binlog files if `files` is given, and otherwise what has landed in a home. The words are those of the
options of the commands. A mistake raises `BinloomError`, with what to do in `hint`.
"""

import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self, TypedDict, TypeVar, Unpack

from binloom.answers import lacks
from binloom.answers.answer import Answer, NoteList, Row
from binloom.answers.changes import RowChange, changes_of, sums_of
from binloom.answers.coverage import Coverage, coverage_of
from binloom.answers.given_definitions import GivenDefinitions
from binloom.answers.opening import Inputs, open_full_log
from binloom.answers.opening import open_log as _open_log
from binloom.answers.row_history import RowHistory, RowThen, row_history_of, row_then
from binloom.answers.schema_changes import SchemaChange, schema_changes_of
from binloom.answers.table_state import TableState, table_state_of
from binloom.answers.timeline import timeline_of
from binloom.answers.transactions import Transaction, transactions_of
from binloom.answers.undo import PlannedUndo, parts_of, planned_undo
from binloom.commands.build_record import has_built_everything
from binloom.pages.over_time import OverTime
from ingest.errors import UsageError
from ingest.sources.servers.address import ServerAddress, host_and_port
from recover.index.opened import Index
from recover.notes import Note, lacking
from recover.questions.statistics import Least
from recover.selection.filters import By, Filters, separated
from recover.sources.log import NO_ROWS, Log
from recover.undo.options import Direction, Mode, UndoOptions
from recover.undo.prove.against import LiveServer

File = str | PathLike[str]
Several = str | Iterable[str]
AnyAnswer = TypeVar("AnyAnswer", bound=Answer[Any])


class Where(TypedDict, total=False):
    """What a question is asked of.

    Attributes
    ----------
    files
        Binlog files, folders of them excluded: paths, archives, or addresses in an object store. Without them, the
        question is about what has landed.
    snapshot_dir, ddl, schema_from
        One of: a folder with a schema snapshot, a file of CREATE TABLE statements, or a server. They define the tables
        of files, as far as these do not.
    index_dir
        Folder that `binloom index --to` wrote; without it, the index of each file is beside it. A note of the answer
        tells how much was read.
    home
        Folder of all data of binloom; by default that of `BINLOOM_HOME`.
    """

    files: File | Iterable[File]
    snapshot_dir: File
    ddl: File
    schema_from: ServerAddress | str
    index_dir: File
    home: File


class Selecting(Where, total=False):
    """Filters of row changes, as those of `binloom query`; several values of one filter are alternatives."""

    source: Several
    schema: Several
    table: Several
    key: str | int | Iterable[str | int]
    key_from: str | int
    key_to: str | int
    type: Several
    since: str | datetime
    until: str | datetime
    gtid: Several
    transaction: Several
    change_id: Several
    thread: int | Iterable[int]
    file: Several
    from_pos: int
    to_pos: int
    changed: Several
    where: Several
    statement: str
    digest: Several
    tag: Several


def changes(*, limit: int | None = None, **selecting: Unpack[Selecting]) -> Answer[RowChange]:
    """Return the row changes that fit all filters, in commit order.

    Parameters
    ----------
    limit
        At most this number of rows; a note tells if there are more.

    Raises
    ------
    BinloomError
        The log cannot be read, or a name, place or time in the filters does not exist.

    Examples
    --------
    >>> for change in changes(table="shop.orders", key=1042):  # doctest: +SKIP
    ...     print(change.committed_at, change.event_type, change.changed_columns)
    """
    log, filters, told = _selected(selecting)
    return _limited(_with_notes(changes_of(log, filters, _one_more(limit)), told), limit)


def summary(
    by: Literal["transaction", "table", "hour", "thread", "app", "route", "digest"],
    *,
    limit: int | None = None,
    **selecting: Unpack[Selecting],
) -> Answer[dict[str, Any]]:
    """Return sums of the selected row changes, as `binloom query --by`; the rest is as for `changes`."""
    log, filters, told = _selected(selecting, counts_all_rows=By(by) is By.TRANSACTION)
    return _limited(_with_notes(sums_of(log, filters, By(by), _one_more(limit)), told), limit)


def timeline(**selecting: Unpack[Selecting]) -> OverTime:
    """Return the selected row changes over time, beside all others of that time; a notebook shows a plot.

    Raises
    ------
    BinloomError
        The log cannot be read, or a name, place or time in the filters does not exist.
    """
    filters, told = _filters(selecting), NoteList()
    log = open_full_log(_inputs(selecting), filters.sources, tell=told)
    found = timeline_of(log, filters)
    notes = lacks.of_selection(log, log.select(filters), is_explained=not found.changes)
    return OverTime(found, (*told, *notes))


def transactions(
    *,
    top: int = 10,
    min_rows: int | None = None,
    min_bytes: int | None = None,
    min_seconds: float | None = None,
    **selecting: Unpack[Selecting],
) -> Answer[Transaction]:
    """Return the transactions with selected changes that have the most rows, and the longest ones.

    Parameters
    ----------
    top
        Number of ranks by rows, and by seconds.
    min_rows, min_bytes, min_seconds
        Thresholds, instead of ranks: transactions that reach one of them.

    Raises
    ------
    BinloomError
        As for `changes`.
    """
    log, filters, told = _selected(selecting, counts_all_rows=True)
    return _with_notes(transactions_of(log, filters, top, Least(min_rows, min_bytes, min_seconds)), told)


def history(table: str, key: str | int, *, source: str | None = None, **where: Unpack[Where]) -> RowHistory:
    """Return every version of a row: when, by which transaction, and which values.

    Parameters
    ----------
    table
        `schema.table`, or the table's name if only one schema has one.
    key
        Primary key: VALUE, VALUE|VALUE for several columns, or COLUMN=VALUE.

    Raises
    ------
    BinloomError
        The log cannot be read, there is no such table, or neither the log nor a baseline has the row.
    """
    log, told = _whole(where, source, table)
    return _with_notes(row_history_of(log, table, str(key), source), told)


def row(
    table: str, key: str | int, as_of: str | datetime, *, source: str | None = None, **where: Unpack[Where]
) -> RowThen:
    """Return a row as it was at a moment: a time in UTC, `file:position` or a GTID. The rest is as for `history`."""
    log, told = _whole(where, source, table)
    found = row_then(log, table, str(key), _moment(as_of), source)
    return replace(found, notes=(*told, *found.notes))


def state(
    table: str, as_of: str | datetime | None = None, *, source: str | None = None, **where: Unpack[Where]
) -> TableState:
    """Return the rows of a table as they were at a moment, in the order of their key.

    Parameters
    ----------
    table
        `schema.table`, or the table's name if only one schema has one.
    as_of
        A time in UTC, `file:position` or a GTID. None: the end of the log.

    Raises
    ------
    BinloomError
        The log cannot be read, or there is no such table or moment.
    """
    log, told = _whole(where, source, table)
    return _with_notes(table_state_of(log, table, None if as_of is None else _moment(as_of), source), told)


def schema_changes(
    table: Several | None = None,
    *,
    schema: Several | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    source: Several | None = None,
    **where: Unpack[Where],
) -> Answer[SchemaChange]:
    """Return the statements that define, alter or drop something, in the order of the log.

    Parameters
    ----------
    table, schema
        Patterns with `*` and `?`. Of a table, the statements on its whole schema are in the answer, too.

    Raises
    ------
    BinloomError
        The log cannot be read, or a time is none.
    """
    given = {"table": table, "schema": schema, "since": since, "until": until, "source": source}
    filters, told = _filters({name: value for name, value in given.items() if value is not None}), NoteList()
    log = open_full_log(_inputs(where), filters.sources, parts=NO_ROWS, tell=told)
    return _with_notes(schema_changes_of(log, filters), told)


def coverage(source: Several | None = None, **where: Unpack[Where]) -> Coverage:
    """Return which files of the log are known, its gaps, its quarantine, and the proofs of the last build.

    Raises
    ------
    BinloomError
        The log cannot be read, or there is no such source.
    """
    sources, told = [] if source is None else _listed(source), NoteList()
    log = open_full_log(_inputs(where), sources, tell=told)
    return _with_notes(coverage_of(log, sources), told)


class Undo:
    """A proved script that takes transactions back or does them again, or the reasons why there is none.

    Its statements are in files until it is closed: by `close`, as a context manager, or with the object.

    Attributes
    ----------
    notes
        The report: what the script does, what it leaves out, or why there is none.
    """

    def __init__(self, planned: PlannedUndo, told: Iterable[Note], opened: ExitStack) -> None:
        self._planned = planned
        self.notes = (*told, *planned.notes)
        self.close = weakref.finalize(self, opened.close)

    @property
    def lacks(self) -> tuple[Note, ...]:
        """What the script lacks, or why there is none."""
        return lacking(self.notes)

    @property
    def is_possible(self) -> bool:
        """Whether there is a script."""
        return self._planned.is_possible

    @property
    def statements(self) -> dict[str, dict[str, int]]:
        """Number of statements by table and verb. SELECT compares a row that the server changes itself."""
        found: dict[str, dict[str, int]] = {}
        for (table, verb), count in sorted(self._planned.plan.counts.items()):
            found.setdefault(table, {})[verb] = count
        return found

    @property
    def rows_left_out(self) -> int:
        """Number of selected rows that the script leaves as they are."""
        return self._planned.plan.left.count

    @property
    def left_out(self) -> Iterator[str]:
        """Each selected row that the script leaves as it is, and why."""
        return self._planned.plan.left.lines()

    def script(self, *, rehearsal: bool = False) -> Iterator[str]:
        """Yield the lines of the script, for the client `mysql` or `mariadb`.

        Parameters
        ----------
        rehearsal
            Whether the script ends with ROLLBACK.

        Raises
        ------
        BinloomError
            There is no script.
        """
        return self._planned.lines("rollback" if rehearsal else "commit")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def undo(
    *,
    skip_conflicts: bool = False,
    with_dependents: bool = False,
    force: bool = False,
    rows_only: bool = False,
    columns: Several | None = None,
    by_transaction: bool = False,
    with_cascades: bool = False,
    json_as_text: bool = False,
    redo: bool = False,
    against: ServerAddress | str | None = None,
    **selecting: Unpack[Selecting],
) -> Undo:
    """Return the proved script that takes the transactions of the selected changes back. Nothing is executed.

    Parameters
    ----------
    skip_conflicts, with_dependents, force
        At most one of them: what happens to rows that later transactions changed.
    rows_only
        Take back only the selected row changes, not their whole transactions.
    columns
        Set only these columns.
    by_transaction
        One block for each transaction, in the exact reverse of commit order, not folded.
    with_cascades
        Add rows that foreign keys removed or emptied and the server did not log.
    json_as_text
        Write texts in JSON as texts, even where they may be dates, times or bytes.
    redo
        Do the changes again, on a server that does not have them.
    against
        Compare each row with this server, which is only read. It also defines the tables of files. A text is
        `HOST[:PORT]`; its user and password are those of the environment.

    Raises
    ------
    BinloomError
        The log cannot be read, the filters select nothing, or options contradict each other. An undo that is refused
        is no error: it has no script, and tells why.
    """
    options = UndoOptions(
        Direction.REDO if redo else Direction.UNDO,
        Mode.of(skip_conflicts=skip_conflicts, with_dependents=with_dependents, force=force),
        None if columns is None else frozenset(separated(_listed(columns))),
        by_transaction,
        rows_only,
        with_cascades,
        json_as_text,
    )
    filters, told = _filters(selecting), NoteList()
    inputs, against = _inputs(selecting), _address(against)
    if against is not None and inputs.files and not filters.sources and not inputs.given.options:
        inputs = replace(inputs, given=GivenDefinitions(server=against))
    with ExitStack() as opening:
        spill = Path(opening.enter_context(tempfile.TemporaryDirectory(prefix="binloom-undo-")))
        parts = parts_of(filters, options, inputs.given, against)
        log = open_full_log(inputs, filters.sources, parts=parts, spill=spill, tell=told)
        server = None if against is None else opening.enter_context(LiveServer(against))
        planned = opening.enter_context(planned_undo(log, filters, options, server=server))
        return Undo(planned, told, opening.pop_all())


def _selected(selecting: Selecting, *, counts_all_rows: bool = False) -> tuple[Log, Filters, NoteList]:
    filters, told = _filters(selecting), NoteList()
    return _open_log(_inputs(selecting), filters, told, counts_all_rows=counts_all_rows), filters, told


def _whole(where: Where, source: str | None, table: str) -> tuple[Log, NoteList]:
    told = NoteList()
    sources = [] if source is None else [source]
    return open_full_log(_inputs(where), sources, table=table, tell=told), told


def _address(server: ServerAddress | str | None) -> ServerAddress | None:
    return ServerAddress.of(*host_and_port(server)) if isinstance(server, str) else server


def _inputs(where: Mapping[str, Any]) -> Inputs:
    files = where.get("files", ())
    paths = [files] if isinstance(files, str | PathLike) else files
    server = _address(where.get("schema_from"))
    given = GivenDefinitions(_path(where.get("snapshot_dir")), _path(where.get("ddl")), server)
    named = [one if isinstance(one, str) and "://" in one else Path(one) for one in paths]
    if given.options and not named:
        raise UsageError("Definitions are for the tables of files.", hint="Give `files` too.")
    index_dir = _path(where.get("index_dir"))
    if index_dir is not None and not named:
        raise UsageError("index_dir is for files.", hint="Give `files` too.")
    return Inputs(named, given, _path(where.get("home")), has_built_everything, Index(index_dir))


def _filters(selecting: Mapping[str, Any]) -> Filters:
    names = {
        "source": "sources",
        "schema": "schemas",
        "table": "tables",
        "key": "keys",
        "type": "types",
        "gtid": "gtids",
        "transaction": "transactions",
        "change_id": "change_ids",
        "thread": "threads",
        "file": "files",
        "changed": "changed",
        "where": "where",
        "digest": "digests",
        "tag": "tags",
    }
    given: dict[str, Any] = {name: _listed(selecting[option]) for option, name in names.items() if option in selecting}
    given |= {"keys": [str(key) for key in given["keys"]]} if "keys" in given else {}
    for name in ("key_from", "key_to"):
        if name in selecting:
            given[name] = str(selecting[name])
    for name in ("since", "until"):
        if name in selecting:
            given[name] = _moment(selecting[name])
    given |= {name: selecting[name] for name in ("from_pos", "to_pos", "statement") if name in selecting}
    if "from_pos" in given or "to_pos" in given:
        from recover.sources.files.file_log import with_only_file

        given = with_only_file(given, _inputs(selecting).files)
    return Filters.of(**given)


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, str | int) else list(value)


def _path(value: Any) -> Path | None:
    return None if value is None else Path(value)


def _moment(value: str | datetime) -> str:
    """Return a moment as the commands take it; a time without a zone is in UTC."""
    if isinstance(value, str):
        return value
    return value.astimezone(UTC).isoformat() if value.tzinfo is not None else value.isoformat()


def _one_more(limit: int | None) -> int | None:
    return None if limit is None else limit + 1


def _limited(answer: Answer[Row], limit: int | None) -> Answer[Row]:
    return answer if limit is None else answer.first(limit)


def _with_notes(answer: AnyAnswer, told: Iterable[Note]) -> AnyAnswer:
    return replace(answer, notes=(*told, *answer.notes))
