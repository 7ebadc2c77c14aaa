"""An undo from the filters of a person to a plan that may be printed."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ingest.errors import UsageError
from ingest.words import counted
from recover.selection.catalog import unknown_name
from recover.selection.condition import Selection
from recover.selection.emptiness import NothingSelectedError, OutsideTheLogError
from recover.selection.filters import Filters, in_words
from recover.sources.home.kept_files import ignored
from recover.sources.log import Log, listed
from recover.timeline.as_of import moment_of
from recover.timeline.baselines import Baseline
from recover.timeline.events import Effect, Place
from recover.timeline.events import Table as LoggedTable
from recover.timeline.masked_columns import masked_tables
from recover.timeline.table_log import events_of
from recover.undo.options import UndoOptions
from recover.undo.plan.planner import Plan, Planner
from recover.undo.print.script import Heading
from recover.undo.prove.against import LiveServer
from recover.undo.prove.triggers import trigger_warnings
from recover.undo.select.altered import carry, present_names
from recover.undo.select.beginnings import Beginnings
from recover.undo.select.cascade_rules import Changed
from recover.undo.select.cascades import CascadeError, add_cascades, cascading_keys, cascading_tables, synthesized
from recover.undo.select.copied import copy_selected
from recover.undo.select.incomplete import left_out, never_landed
from recover.undo.select.masked import masked_obstacles
from recover.undo.select.obstacles import harms, obstacles, warnings
from recover.undo.select.overlay import taken_off
from recover.undo.select.parts import assert_read
from recover.undo.select.selected import EmptySelectionError, Selected, first_place, is_selected, select
from recover.undo.select.statements_within import statements_within
from recover.undo.tables.definitions import Definitions, former_keys, keys_in_time, undescribed_keys
from recover.undo.tables.table import ForeignKey, TableName

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


_CERTAINTY: Final = {
    "exact": "logged by the server",
    "in_force": "known from a definition and the statements since",
    "inferred": "inferred from a definition whose position is unknown or later",
}
_WITHOUT_CASCADES: Final = (
    "Leave out --with-cascades, and bring these rows back from a backup: `binloom restore` gives them from a dump and"
    " the log."
)
_UNKNOWN_CHILDREN: Final = (
    "rows that a foreign key deletes or changes with a deleted row, if its table is older than the log: only --against"
    " or a schema snapshot shows such keys"
)


@contextmanager
def planned(
    log: Log,
    filters: Filters,
    options: UndoOptions,
    *,
    server: LiveServer | None = None,
    tell: Callable[[str], None] = ignored,
) -> Iterator[tuple[Planner, Plan, Heading]]:
    """Give the plan for what filters select in a log with the marts of `table_log`, and what its head needs.

    Parameters
    ----------
    server
        Compare the rows of the plan with this server.
    tell
        Gets the notes on conditions, for rows whose column has another type.

    Raises
    ------
    UsageError
        The filters select nothing, or changes that cannot be undone together.
    """
    connection, selection = log.connection, log.select(filters)
    with taken_off(connection):
        for note in selection.notes:
            tell(note)
        condition = selection.condition.sql("duckdb")
        if log.copies is not None:
            condition = copy_selected(log.copies, selection, options)
        try:
            selected = select(connection, condition, rows_only=options.rows_only)
        except EmptySelectionError:
            raise _why_nothing(log, selection) from None
        _assert_columns(connection)
        on_server = None if server is None else server.snapshot()
        of_server = [] if on_server is None else [Definitions.of_server(on_server, str(server))]
        definitions = Definitions.of_log(log, selected.source_id, *of_server)
        names = {*selected.tables}
        around: set[TableName] = set()
        if options.with_cascades:
            present = present_names(log, selected)
            around = cascading_tables(definitions, present) - present
        altered, selected = carry(log, selected, definitions, sorted(around))
        definitions = altered.defined(definitions)
        definitions = definitions.with_documents(log, names | {*selected.tables}, json_as_text=options.json_as_text)
        _assert_known(options, selected, definitions)
        assert_read(log, selected.tables, definitions)
        first = first_place(connection, selected)
        keys_of_log = keys_in_time(log, selected.source_id)
        former = former_keys(keys_of_log, first, {*definitions.tables, *selected.tables})
        undescribed = undescribed_keys(keys_of_log, definitions.tables)
        missing: dict[TableName, int] = {}
        if options.with_cascades:
            _assert_present(connection, selected, definitions, former, undescribed)
            missing = _add_cascades(log, selected, definitions, first)
            selected = select(connection, condition)
        masks = masked_tables(log, selected.source_id)

        def problems_of(changes: Selected) -> list[str]:
            compared = server is not None
            masked = masked_obstacles(connection, changes, definitions, masks, options, is_compared=compared)
            found = obstacles(connection, changes, definitions, log.versions, altered)
            return [*left_out(connection, changes), *altered.problems, *found, *masked]

        problems = problems_of(selected)
        heading = Heading(
            str(moment_of(connection, selected.source_id, None)),
            in_words(filters),
            _confidence(connection, selected),
            "" if server is None else str(server),
            {".".join(name): definitions.origins[name] for name in selected.tables if name in definitions.origins},
        )
        beginnings = Beginnings(connection, selected.source_id)
        with Planner(connection, definitions, server, beginnings) as planner:
            plan = Plan(selected, options) if problems else planner.plan(selected, options)
            if plan.added:
                problems = problems_of(plan.selected)
            plan.problems += problems
            plan.warnings += altered.dropped + altered.warnings
            plan.drops_values = bool(altered.dropped)
            keys = (*definitions.foreign_keys, *former, *undescribed)
            if not (log.logs_cascades if on_server is None else on_server.logs_cascades):
                plan.warnings += warnings(connection, plan.selected, keys, options)
            if not definitions.has_all_children and any(verb == "DELETE" for _, verb in plan.counts):
                plan.warnings.append(_UNKNOWN_CHILDREN)
            plan.warnings += trigger_warnings(connection, plan.selected, server)
            written = {name for name, verb in plan.counts if verb != "DELETE"}
            for table in definitions.tables.values():
                plan.warnings += table.zone_warnings if table.text in written else ()
            plan.warnings += never_landed(log, plan.selected)
            plan.warnings += statements_within(connection, selected.source_id, filters)
            if options.with_cascades:
                plan.synthesized = synthesized(connection, plan.selected)
            for name, count in missing.items():
                plan.warnings.append(
                    f"{counted(count, 'row')} of {'.'.join(name)} that a cascade changed, because the last images are"
                    " older than a change of the table itself"
                )
            if log.open_transaction is not None:
                plan.warnings.append(f"the transaction at {log.open_transaction}, which has no end in the file")
            if log.goes_on_after is not None:
                plan.warnings.append(f"changes in files after {log.goes_on_after}, which were not given")
                plan.goes_on_after = log.goes_on_after
            yield planner, plan, heading


def _why_nothing(log: Log, selection: Selection) -> UsageError:
    """Return the error for an empty selection; rows in quarantine may be what the filters are looking for."""
    reason = log.why_nothing(selection)
    if not isinstance(reason, NothingSelectedError) or isinstance(reason, OutsideTheLogError):
        return reason
    missing = log.quarantined(selection.filters)
    if not missing:
        return reason
    return NothingSelectedError(
        f"{reason.message} Row events in quarantine are not searched: {listed(missing)}.",
        hint=log.way_out_of_quarantine(missing),
    )


def _assert_present(
    connection: "DuckDBPyConnection",
    selected: Selected,
    definitions: Definitions,
    former: Sequence[ForeignKey],
    undescribed: Sequence[ForeignKey],
) -> None:
    """Refuse to follow a cascade whose foreign key was dropped since, or whose table has no definition at the end."""
    keys = dict.fromkeys((*definitions.foreign_keys, *former, *undescribed))
    for key in Changed.by_selection(connection, selected).through(keys):
        if key in former:
            # The tables may have changed in any way.
            reason = f"foreign key {key.name} of {'.'.join(key.table)} was dropped since"
        elif key in undescribed:
            name = ".".join(key.table)
            reason = f"nothing tells the columns of {name} at the end of the log (foreign key {key.name})"
        else:
            continue
        raise UsageError(f"The cascades cannot be followed: {reason}.", hint=_WITHOUT_CASCADES)


def _add_cascades(log: Log, selected: Selected, definitions: Definitions, first: Place) -> dict[TableName, int]:
    connection = log.connection
    _assert_named(log, selected, definitions)
    cuts: dict[TableName, list[Place]] = {}
    emptied: dict[TableName, list[Place]] = {}
    baselines: dict[TableName, Baseline] = {}
    beginnings = Beginnings(connection, selected.source_id)
    for name in {key.table for key in cascading_keys(definitions, selected.tables)}:
        for event in events_of(connection, LoggedTable(selected.source_id, *name)):
            if harms(event):
                cuts.setdefault(name, []).append(event.place)
            if event.effect is Effect.EMPTIES:
                emptied.setdefault(name, []).append(event.place)
        if (baseline := beginnings.before(name, first).baseline) is not None:
            baselines[name] = baseline
    try:
        return add_cascades(connection, selected, definitions, cuts, emptied, baselines)
    except CascadeError as error:
        raise UsageError(
            f"The cascades cannot be followed: {error}.",
            hint=_WITHOUT_CASCADES,
        ) from None


def _assert_named(log: Log, selected: Selected, definitions: Definitions) -> None:
    """Refuse cascades to a table with rows in quarantine, among which the last images of its rows may be."""
    names = {*map(".".join, cascading_tables(definitions, selected.tables))}
    missing = [one for one in log.quarantined(Filters(sources=(selected.source_id,))) if one.table in names]
    if missing:
        raise UsageError(
            f"The cascades cannot be followed: row events are in quarantine: {listed(missing)}.",
            hint=log.way_out_of_quarantine(missing),
        )


def _assert_columns(connection: "DuckDBPyConnection") -> None:
    found = {row[0] for row in connection.execute("describe binloom.row_changes").fetchall()}
    if missing := {"outcome", "binding_confidence", "undecoded_columns"} - found:
        raise UsageError(
            f"row_changes has no column {min(missing)}: an older binloom built it.", hint="Run `binloom build`."
        )


def _assert_known(options: UndoOptions, selected: Selected, definitions: Definitions) -> None:
    """Refuse columns that no selected table has: nothing would be set, and the undo would look done."""
    tables = [definitions.tables[name] for name in selected.tables if name in definitions.tables]
    known = {name for table in tables for name in table.stored_names}
    for column in sorted((options.columns or frozenset()) - known):
        names = ", ".join(table.text for table in tables)
        raise unknown_name(f"No statement can set a column {column!r} of {names} (--columns).", column, known)


def _confidence(connection: "DuckDBPyConnection", selected: Selected) -> str:
    rows = connection.execute(
        f"select distinct binding_confidence from binloom.row_changes as changes where {is_selected(selected.is_whole)}"
        " order by 1"
    ).fetchall()
    return "; ".join(_CERTAINTY.get(confidence, "of unknown certainty") for (confidence,) in rows)
