"""What an undo would do, without its script in memory; nothing is executed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from binloom.answers.undo import PlannedUndo, planned_undo
from ingest.errors import UsageError
from recover.notes import Kind, Note
from recover.selection.filters import Filters
from recover.sources.log import Log
from recover.undo.options import UndoOptions
from recover.undo.plan.left_rows import Group, Treatment
from recover.undo.rows.operations import Verb

_LINES: Final = 2_000
_CHARACTERS: Final = 400_000


@dataclass(frozen=True, slots=True)
class ShownUndo:
    """What an undo would do; nothing is executed.

    Attributes
    ----------
    is_possible
        Whether there is a script; it is proved.
    statements
        Number of statements by table and verb.
    script
        Its first lines.
    lines
        Number of all lines.
    transactions
        Number of transactions that it takes back.
    groups
        Rows that get no statement, and why.
    left
        What is in the way of the first of these groups, which `notes` do not repeat.
    left_out
        Number of rows that an undo would have to change, with those in groups.
    """

    is_possible: bool
    statements: Mapping[tuple[str, Verb], int]
    notes: tuple[Note, ...]
    script: tuple[str, ...] = ()
    lines: int = 0
    transactions: int = 0
    groups: tuple[Group, ...] = ()
    left: tuple[Note, ...] = ()
    left_out: int = 0

    @property
    def is_needless(self) -> bool:
        """Whether there is no script because nothing is left to do."""
        return not self.is_possible and all(note.kind is not Kind.REFUSED for note in (*self.notes, *self.left))

    @property
    def is_partial(self) -> bool:
        """Whether the script leaves selected rows as they are."""
        return self.is_possible and self.rows(Treatment.LEFT) > 0

    def rows(self, treatment: Treatment) -> int:
        """Return how many rows without a statement are treated in one way."""
        return sum(group.rows for group in self.groups if group.treatment is treatment)

    @property
    def shown_groups(self) -> list[tuple[Group, Note]]:
        """The first groups, each with what is in its way."""
        return list(zip(self.groups, self.left, strict=False))


def shown_undo(log: Log, filters: Filters, options: UndoOptions) -> ShownUndo:
    """Return what an undo would do; one that is refused is no error. The rest is as for `planned_undo`."""
    try:
        with planned_undo(log, filters, options) as planned:
            return _shown(planned)
    except UsageError as error:
        refusal = Note(f"{error.message} {error.hint or ''}".strip(), Kind.REFUSED)
        return ShownUndo(False, {}, (refusal,))


def _split(texts: Iterator[str]) -> Iterator[str]:
    """Yield the lines of texts, of which some have several."""
    return (line for text in texts for line in text.split("\n"))


def _first(lines: Iterator[str]) -> Iterator[str]:
    """Yield the first lines, not many and not much."""
    left = _CHARACTERS
    for line in islice(lines, _LINES):
        yield line
        left -= len(line)
        if left < 0:
            return


def _shown(planned: PlannedUndo) -> ShownUndo:
    plan = planned.plan
    lines = _split(planned.lines() if planned.is_possible else iter(()))
    script = tuple(_first(lines))
    rest = sum(1 for _ in lines)
    return ShownUndo(
        is_possible=planned.is_possible,
        statements=dict(sorted(plan.counts.items())),
        notes=tuple(note for note in planned.notes if note not in planned.left),
        script=script,
        lines=len(script) + rest,
        transactions=plan.selected.transactions,
        groups=tuple(plan.left.groups),
        left_out=plan.left.count,
        left=planned.left,
    )
