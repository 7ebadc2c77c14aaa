"""The options of an undo: what is taken back or done again, and how."""

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final, Self

from ingest.errors import UsageError


class Mode(Enum):
    """The treatment of rows that other transactions changed, too."""

    REFUSE = "refuse"
    SKIP = "skip-conflicts"
    DEPENDENTS = "with-dependents"
    FORCE = "force"

    @classmethod
    def of(cls, *, skip_conflicts: bool = False, with_dependents: bool = False, force: bool = False) -> Self:
        """Return the treatment that is asked for.

        Raises
        ------
        UsageError
            More than one is asked for.
        """
        asked = {cls.SKIP: skip_conflicts, cls.DEPENDENTS: with_dependents, cls.FORCE: force}
        chosen = [mode for mode, is_asked in asked.items() if is_asked]
        if len(chosen) > 1:
            names = " and ".join(f"--{mode.value}" for mode in chosen)
            raise UsageError(f"{names} contradict each other.", hint="Give one of them.")
        return cls(chosen[0] if chosen else cls.REFUSE)


class Direction(Enum):
    """Whether the selection is taken back or done again."""

    UNDO = "undo"
    REDO = "redo"

    @property
    def way_in_steps(self) -> str:
        """What to do if one folded script is impossible."""
        if self is Direction.UNDO:
            return "use --by-transaction"
        return "redo one --transaction after the other, or run the statements of their only transaction again"


@dataclass(frozen=True)
class UndoOptions:
    """The options of an undo or redo: how a selection is taken back, or done again.

    Attributes
    ----------
    columns
        The only columns that are set; None for all.
    by_transaction
        Whether each change is taken back by a statement of its own, in the exact reverse of commit order.
    rows_only
        Whether only the selected row changes are taken back, not their whole transactions.
    with_cascades
        Whether rows are added that cascading foreign keys changed without a trace in the log.
    json_as_text
        Whether a text in a document is a text if the log does not tell that it is a date, a time or bytes.
    """

    direction: Direction = Direction.UNDO
    mode: Mode = Mode.REFUSE
    columns: frozenset[str] | None = None
    by_transaction: bool = False
    rows_only: bool = False
    with_cascades: bool = False
    json_as_text: bool = False

    @cached_property
    def is_plain(self) -> bool:
        """Whether whole changes are taken back, each row by one statement."""
        return self.direction is Direction.UNDO and self.columns is None and not self.by_transaction


NO_OPTIONS: Final = UndoOptions()
