"""What an undo would do, and its script. Nothing is executed."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from binloom.answers.shown_undo import shown_undo
from binloom.answers.undo import PlannedUndo, planned_undo
from binloom.ui.opened_log import OpenedLog
from binloom.ui.view import Download, View, new_file, show, write_lines
from binloom.ui.words import FILTERS, Words
from ingest.errors import UsageError
from recover.selection.filters import Filters, separated
from recover.sources.log import Log
from recover.undo.options import Direction, Mode, UndoOptions
from recover.undo.plan.left_rows import Treatment

_MODES: Final = {
    Mode.REFUSE: "refuse the undo",
    Mode.SKIP: "leave these rows out (--skip-conflicts)",
    Mode.DEPENDENTS: "take the later transactions back, too (--with-dependents)",
    Mode.FORCE: "overwrite the later changes (--force)",
}
_ROWS_ONLY: Final = "rows-only"
_SWITCHES: Final = {
    "by-transaction": "one block for each transaction, in the reverse of commit order (--by-transaction)",
    "with-cascades": "also rows that foreign keys changed and the server did not log (--with-cascades)",
    "json-as-text": "texts in JSON stay texts, even where they may be dates or bytes (--json-as-text)",
}
_OPTIONS: Final = ("conflicts", "columns", _ROWS_ONLY, *_SWITCHES)


def _page(log: Log, words: Words, opened: OpenedLog) -> str:
    filters = words.filters()
    options = _options(words)
    is_selective = filters.is_selective
    found = shown_undo(log, filters, options) if is_selective else None
    return show(
        "undo.html",
        words=words,
        filters=FILTERS,
        selecting=words.selecting(),
        found=found,
        mode=options.mode.value,
        modes={mode.value: text for mode, text in _MODES.items()},
        rows_only="leave them alone: take back only the selected row changes (--rows-only)",
        switches=_SWITCHES,
        left_out=found.left_out if found else 0,
        overwritten=found.rows(Treatment.OVERWRITTEN) if found else 0,
        notes=opened.notes,
    )


def _script(log: Log, words: Words, opened: OpenedLog) -> Download:
    ending = words.one("end-with") or "commit"
    if ending not in ("commit", "rollback"):
        raise UsageError(f"A script cannot end with {ending!r}.", hint="Give commit or rollback.")
    path = _written(log, words, opened, lambda planned: planned.lines("rollback" if ending == "rollback" else "commit"))
    return Download(path, "undo.sql" if ending == "commit" else "rehearsal.sql", "application/sql")


def _left_out(log: Log, words: Words, opened: OpenedLog) -> Download:
    path = _written(log, words, opened, lambda planned: planned.plan.left.lines())
    return Download(path, "left-out.txt", "text/plain")


def _written(log: Log, words: Words, opened: OpenedLog, lines: Callable[[PlannedUndo], Iterator[str]]) -> Path:
    """Write lines of the plan to a new file."""
    filters = words.filters()
    _assert_selective(filters)
    path = new_file(opened.folder)
    try:
        with planned_undo(log, filters, _options(words)) as planned:
            write_lines(path, (f"{line}\n" for line in lines(planned)))
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def _assert_selective(filters: Filters) -> None:
    if not filters.is_selective:
        raise UsageError("No filter is set.", hint="Select the transactions that are to be taken back.")


def _options(words: Words) -> UndoOptions:
    given = words.one("conflicts") or Mode.REFUSE.value
    try:
        mode = Mode(given)
    except ValueError:
        modes = ", ".join(one.value for one in Mode)
        raise UsageError(f"Conflicts cannot be met with {given!r}.", hint=f"Give {modes}.") from None
    columns = words.one("columns")
    names = None if columns is None else frozenset(separated([columns]))
    switches = {name.replace("-", "_"): words.has(name) for name in (_ROWS_ONLY, *_SWITCHES)}
    return UndoOptions(Direction.UNDO, mode, names, **switches)


VIEW = View((*FILTERS, *_OPTIONS), _page)
LEFT_OUT = View((*FILTERS, *_OPTIONS), _left_out)
SCRIPT = View((*FILTERS, *_OPTIONS, "end-with"), _script)
