"""The options of an undo: what is taken back or done again, and how."""

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Self

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
    """

    direction: Direction = Direction.UNDO
    mode: Mode = Mode.REFUSE
    columns: frozenset[str] | None = None
    by_transaction: bool = False

    @cached_property
    def is_plain(self) -> bool:
        """Whether whole changes are taken back, each row by one statement."""
        return self == UndoOptions(mode=self.mode)
