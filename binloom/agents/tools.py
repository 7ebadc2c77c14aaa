"""The tools: each asks one function of `binloom.api`, and returns its answer with what that lacks."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from binloom import api
from binloom.agents import arguments as asking
from binloom.agents.bounds import Bounded, bounded_sentence, sentences
from binloom.agents.told import MOST_ROWS, Covered, Lack, Preview, Rows, Statements, Told
from binloom.answers import lacks
from binloom.answers.answer import Answer
from binloom.answers.coverage import Coverage
from binloom.answers.named_files import binlogs
from ingest.errors import UsageError
from recover.notes import Kind, Note, lacking
from recover.selection.condition import is_filtered_table
from recover.selection.filters import By, Filters, moment
from recover.sources.home.kept_files import ignored

_LEFT_OUT_SHOWN: Final = 40
_NAMES_SHOWN: Final = 20


@dataclass(frozen=True)
class Place:
    """The log that all tools ask; only who starts the server chooses it.

    Attributes
    ----------
    where
        Files and what defines their tables. Empty: what has landed in the home.
    source
        The only source. None: all that have landed.
    """

    where: api.Where
    source: str | None = None

    def source_of(self, asked: asking.Arguments) -> dict[str, Any]:
        """Return the source of a question, as an argument of `binloom.api`.

        Raises
        ------
        UsageError
            The server has one source, and another one is asked for.
        """
        if asked.source is not None and asked.source != self.source and (self.source or self.where.get("files")):
            raise UsageError("This server answers for one source.", hint="Leave out `source`.")
        source = asked.source or self.source
        return {} if source is None else {"source": source}

    def limits(self, asked: asking.Arguments) -> Iterator[Note]:
        """Yield what no answer about this log can know: gaps, masked values, and what is after its end."""
        files: Any = self.where.get("files")
        if files:
            until: str | None = getattr(asked, "until", None)
            yield from lacks.beside_files(
                binlogs(files, ignored),
                until=None if until is None else moment(until, "until"),
                is_inside=any(getattr(asked, name, None) for name in ("transaction", "change_id", "file")),
                tells_gaps=isinstance(asked, asking.Query),
            )
            return
        known = api.coverage(**self.source_of(asked), **self.where)
        yield from lacks.gap_notes(known.gaps)
        if isinstance(asked, asking.Query) and asked.by is By.CHANGE:
            yield from _masked(known, asked)
        for one in known.sources:
            yield Note(f"{one.source_id} has landed up to {one.last_file}:{one.last_pos}; later changes are not known.")


@dataclass(frozen=True)
class Tool:
    """A tool.

    Attributes
    ----------
    arguments, told
        What it takes, and what it returns.
    """

    name: str
    title: str
    description: str
    arguments: type[asking.Arguments]
    told: type[Told]
    ask: Callable[[Place, Any], Told]


def _masked(known: Coverage, asked: asking.Query) -> Iterator[Note]:
    """Yield which columns of the selected tables are masked."""
    filters = Filters.of(schemas=_listed_names(asked.schema_), tables=_listed_names(asked.table))
    names = [
        f"{one.schema_name}.{one.table_name}.{one.column_name} ({one.method})"
        for one in known.masked
        if is_filtered_table(filters, one.schema_name, one.table_name)
    ]
    if names:
        more = f" and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
        shown = f"{', '.join(names[:_NAMES_SHOWN])}{more}"
        yield Note(f"masked, so not the values of the server: {shown}.", Kind.MASKED)


def _listed_names(value: str | list[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else value or []


def query(place: Place, asked: asking.Query) -> Rows:
    """Answer with row changes, or sums of them."""
    selecting = {**asked.filters, **place.source_of(asked), **place.where}
    if asked.by is By.CHANGE:
        return _rows(api.changes(limit=asked.limit, **selecting), asked.limit, place.limits(asked))
    by: Any = asked.by.value
    return _rows(api.summary(by, limit=asked.limit, **selecting), asked.limit, place.limits(asked))


def transactions(place: Place, asked: asking.Transactions) -> Rows:
    """Answer with big and long transactions."""
    found = api.transactions(
        top=asked.top,
        min_rows=asked.min_rows,
        min_bytes=asked.min_bytes,
        min_seconds=asked.min_seconds,
        **asked.filters,
        **place.source_of(asked),
        **place.where,
    )
    return _rows(found, asked.limit, place.limits(asked))


def history(place: Place, asked: asking.History) -> Rows:
    """Answer with the versions of a row."""
    found = api.history(asked.table, asked.key, **place.source_of(asked), **place.where)
    return _rows(found, asked.limit, place.limits(asked))


def state(place: Place, asked: asking.State) -> Rows:
    """Answer with the rows of a table at a moment."""
    found = api.state(asked.table, asked.as_of, **place.source_of(asked), **place.where)
    return _rows(found, asked.limit, place.limits(asked))


def schema_changes(place: Place, asked: asking.SchemaChanges) -> Rows:
    """Answer with statements that changed the schema."""
    given: dict[str, Any] = {"table": asked.table, "schema": asked.schema_, "since": asked.since, "until": asked.until}
    return _rows(api.schema_changes(**given, **place.source_of(asked), **place.where), asked.limit)


def coverage(place: Place, asked: asking.Coverage) -> Covered:
    """Answer with what is known of the log."""
    found = api.coverage(**place.source_of(asked), **place.where)
    bounded = Bounded()
    return Covered(
        sources=bounded.rows(found.sources[:MOST_ROWS]),
        quarantine=bounded.rows(found.quarantine[:MOST_ROWS]),
        gaps=bounded.rows(found.gaps[:MOST_ROWS]),
        masked=bounded.rows(found.masked[:MOST_ROWS]),
        proofs=None if found.proved is None else bounded.rows([found.proved])[0],
        **_listed(found, asked.limit, bounded),
    )


def undo_preview(place: Place, asked: asking.UndoPreview) -> Preview:
    """Answer with what an undo or a redo would do."""
    selecting = {**asked.filters, **place.source_of(asked), **place.where}
    with closing(api.undo(**asked.options, **selecting)) as planned:
        bounded = Bounded()
        left_out, _ = bounded.lines(planned.left_out, _LEFT_OUT_SHOWN)
        lines = planned.script() if planned.is_possible else ()
        script, script_is_cut = bounded.lines(lines, asked.script_lines)
        return Preview(
            is_possible=planned.is_possible,
            # A script that is not proved does not exist.
            proved=planned.is_possible,
            statements=[
                Statements(table=bounded_sentence(table), counts=counts) for table, counts in planned.statements.items()
            ],
            rows_left_out=planned.rows_left_out,
            left_out=left_out,
            script=script,
            script_is_cut=script_is_cut,
            **_on([*planned.notes, *place.limits(asked), *bounded.notes]),
        )


def _rows(answer: Answer[Any], limit: int, limits: Iterable[Note] = ()) -> Rows:
    return Rows(**_listed(answer, limit, Bounded(), limits))


def _listed(answer: Answer[Any], limit: int, bounded: Bounded, limits: Iterable[Note] = ()) -> dict[str, Any]:
    """Return the fields of an answer with rows."""
    found = answer.first(limit)
    rows = bounded.rows(found)
    notes = [*found.notes, *limits, *bounded.notes]
    return {
        "shown": len(rows),
        "row_limit": limit,
        "is_cut": any(note.kind is Kind.CUT for note in notes),
        "columns": [*rows[0]] if rows else [*found.columns],
        "rows": rows,
        **_on(notes),
    }


def _on(notes: Iterable[Note]) -> dict[str, Any]:
    """Return the notes on an answer as the fields that every answer has. Values are never in `lacks` and `notes`."""
    found = list(dict.fromkeys(notes))
    missing = lacking(found)
    quoting = [note for note in found if note.quotes_values]
    said = [(note.kind, note) for note in missing if not note.quotes_values]
    counts = {kind: sum(note.kind is kind for note in quoting) for kind in dict.fromkeys(one.kind for one in quoting)}
    said += [
        (kind, Note(f"there are {number:,} reasons that quote values: see `quoting`."))
        for kind, number in counts.items()
        if kind is not Kind.FACT
    ]
    return {
        "is_complete": not missing,
        "lacks": [Lack(kind=kind, sentence=bounded_sentence(one)) for kind, one in said],
        "notes": sentences(note for note in found if not note.is_lack and not note.quotes_values),
        "quoting": sentences(quoting),
    }


TOOLS: Final = (
    Tool(
        "query",
        "Row changes",
        "Row changes that fit all filters, in commit order: who changed which row, when, from what to what. With `by`,"
        " sums of them.",
        asking.Query,
        Rows,
        query,
    ),
    Tool(
        "history",
        "One row through time",
        "Every version of a row: when it began, by which transaction, and which values it had.",
        asking.History,
        Rows,
        history,
    ),
    Tool(
        "state",
        "A table at a moment",
        "The rows of a table as they were at a moment. Rows that the log never shows are not in it, unless a baseline"
        " has them: `lacks` and `notes` say whether these are all rows.",
        asking.State,
        Rows,
        state,
    ),
    Tool(
        "transactions",
        "Big and long transactions",
        "The transactions with the most rows and the longest ones, among those with a selected change.",
        asking.Transactions,
        Rows,
        transactions,
    ),
    Tool(
        "schema_changes",
        "Schema changes",
        "Statements that define, alter or drop something, in the order of the log.",
        asking.SchemaChanges,
        Rows,
        schema_changes,
    ),
    Tool(
        "undo_preview",
        "Preview of an undo",
        "What SQL that takes the transactions of the selected changes back would do: statements by table, rows that it"
        " leaves out and why, and its first lines. Nothing is executed, and nothing can be executed here.",
        asking.UndoPreview,
        Preview,
        undo_preview,
    ),
    Tool(
        "coverage",
        "What is known of the log",
        "Which files, positions and times the log has, its gaps, its quarantine, and the proofs of the last build. Ask"
        " this first: no other answer knows more than the log.",
        asking.Coverage,
        Covered,
        coverage,
    ),
)
