"""Comparisons of a condition that do not fit the type of their column in every version of its table.

A person thinks of the table as it is now. An earlier version, or another table, in which a comparison has no meaning
must neither end the question nor hide rows of the others. The command prints what the comparison means there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ingest.errors import UsageError
from recover.selection.catalog import Column, TableVersion, UnknownNameError
from recover.selection.comparison import MismatchError

if TYPE_CHECKING:
    from sqlglot import exp

_MOST_NOTES: Final = 5
# Types and tables in a note.
_MOST_PLACES: Final = 3


@dataclass
class Fitting:
    """Notes on the comparisons of a condition, while it is bound to one group of versions after another."""

    _fitting: set[int] = field(default_factory=set)
    _misfits: dict[int, UsageError] = field(default_factory=dict)
    # By column and what is said of it, where it is so.
    _notes: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)

    def bound(
        self,
        part: "exp.Expr",
        bind: "Callable[[], exp.Expr]",
        column: Column,
        versions: Sequence[TableVersion],
        *,
        otherwise: "Callable[[], exp.Expr]",
        note: Callable[[], str],
    ) -> "exp.Expr":
        """Return a comparison for versions of tables.

        Parameters
        ----------
        part
            The part of the condition that is compared with the column.
        bind
            Gives the comparison, if it fits.
        column, versions
            The column, and versions in which it compares alike.
        otherwise
            Gives the result if it does not fit.
        note
            Gives the note if it does not fit.
        """
        try:
            bound = bind()
        except UnknownNameError as error:
            # An ENUM without a label has no row with it, so that there is nothing to tell.
            self._misfits.setdefault(id(part), error)
            return otherwise()
        except MismatchError as error:
            self._misfits.setdefault(id(part), error)
            self.tell(column, versions, note())
            return otherwise()
        self._fitting.add(id(part))
        return bound

    def tell(self, column: Column, versions: Sequence[TableVersion], note: str) -> None:
        """Record a note about a column in some versions."""
        places = self._notes.setdefault((column.name, note), {})
        for version in versions:
            own = version.column(column.name) or column
            places[f"{own.shown_type} in {version.name}"] = None

    def assert_all_fit(self) -> None:
        """Refuse a comparison that fits no version.

        Raises
        ------
        UsageError
            Of the first of them.
        """
        for part, error in self._misfits.items():
            if part not in self._fitting:
                raise error

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the notes: a sentence for each comparison and column, but not for hundreds of them."""
        notes = [f"where {column} is {_listed([*places])}, {note}." for (column, note), places in self._notes.items()]
        more = len(notes) - _MOST_NOTES
        return tuple(notes) if more <= 0 else (*notes[:_MOST_NOTES], f"the same is true of {more} more comparisons.")


def _listed(places: Sequence[str]) -> str:
    more = len(places) - _MOST_PLACES
    return " or ".join(places[:_MOST_PLACES]) + (f" (and {more} more)" if more > 0 else "")
