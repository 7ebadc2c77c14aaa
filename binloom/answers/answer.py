"""An answer: rows that are read while they are used, and what they lack."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from recover.notes import Kind, Note, lacking

if TYPE_CHECKING:
    import pyarrow as pa

Row = TypeVar("Row")
Cells = tuple[Any, ...]

_SHOWN_ROWS = 20


class NoteList(list[Note]):
    """Notes in the order in which they were told; it is told them by a call."""

    def __call__(self, sentence: str) -> None:
        self.append(sentence if isinstance(sentence, Note) else Note(sentence))


@dataclass(frozen=True)
class Answer(Generic[Row]):
    """Rows that answer a question, with what they lack.

    Iterating gives the rows as objects; each iteration asks again.

    Attributes
    ----------
    columns
        Names of the columns.
    notes
        Sentences on the answer; `lacks` are those because of which it is not the whole truth.
    """

    columns: tuple[str, ...]
    notes: tuple[Note, ...]
    read: Callable[[], Iterator[Cells]] = field(repr=False)
    """Returns the rows as tuples, in the order of `columns`."""
    as_row: Callable[[Mapping[str, Any]], Row] = field(repr=False)
    """Makes a row of its values by column."""
    as_table: Callable[[], "pa.Table"] | None = field(default=None, repr=False)

    @property
    def lacks(self) -> tuple[Note, ...]:
        """What the answer lacks. Empty if it is the whole truth as far as the log tells it."""
        return lacking(self.notes)

    @property
    def is_complete(self) -> bool:
        """Whether the answer lacks nothing that is known of."""
        return not self.lacks

    def __iter__(self) -> Iterator[Row]:
        for cells in self.read():
            yield self.as_row(dict(zip(self.columns, cells, strict=True)))

    def first(self, limit: int) -> "Answer[Row]":
        """Return the first rows, in memory; a note tells if there are more."""
        rows = list(islice(self.read(), limit + 1))
        cut = (Note(f"these are the first {limit} rows; there are more.", Kind.CUT),) if len(rows) > limit else ()
        kept = rows[:limit]
        return Answer(self.columns, (*self.notes, *cut), lambda: iter(kept), self.as_row)

    def arrow(self) -> "pa.Table":
        """Return all rows as an Arrow table; maps, lists and times keep their types."""
        if self.as_table is not None:
            return self.as_table()
        return table_of(self.columns, self.read())

    def _repr_html_(self) -> str:
        """Return the first rows and all notes as HTML, for a notebook."""
        from html import escape

        shown = self.first(_SHOWN_ROWS)
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{'' if cell is None else escape(str(cell))}</td>" for cell in cells) + "</tr>"
            for cells in shown.read()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{html_of(shown.notes)}"


def html_of(notes: Iterable[Note]) -> str:
    """Return notes as a list in HTML, for a notebook."""
    from html import escape

    return f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>"


def table_of(columns: Sequence[str], rows: Iterable[Cells]) -> "pa.Table":
    """Return rows as an Arrow table. The values of maps and lists are texts, as everywhere in binloom."""
    import pyarrow as pa

    found = list(rows)
    values = {name: [cells[place] for cells in found] for place, name in enumerate(columns)}
    return pa.table({name: pa.array(list_, _arrow_type(list_)) for name, list_ in values.items()})


def _arrow_type(values: Iterable[Any]) -> "pa.DataType | None":
    """Return the type of values that Arrow would take for a struct; None lets Arrow decide."""
    import pyarrow as pa

    for value in values:
        if isinstance(value, Mapping):
            return pa.map_(pa.string(), pa.string())
        if isinstance(value, list | tuple):
            return None if any(isinstance(one, Mapping) for one in value) else pa.list_(pa.string())
        if value is not None:
            return None
    return None


def known_fields(kind: type[Row]) -> Callable[[Mapping[str, Any]], Row]:
    """Return the function that makes an object of a dataclass from columns; others of the columns are left out.

    A mart that an older binloom built lacks new columns until it is built again: their fields are None.
    """
    names = [one.name for one in fields(kind)]  # type: ignore[arg-type]
    return lambda row: kind(**{name: row.get(name) for name in names})
