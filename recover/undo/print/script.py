"""A plan as a script for the `mysql` or `mariadb` client: it commits what was expected, or nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from ingest.escapes import visible
from ingest.words import counted, subject
from recover.timeline.baselines import Baseline
from recover.undo.options import Direction, Mode
from recover.undo.plan.planner import Plan, Planner
from recover.undo.prove.long_values import in_parts
from recover.undo.prove.session import SESSION

Ending = Literal["commit", "rollback"]


@dataclass(frozen=True)
class Heading:
    """Facts that the head of a script has beside its plan.

    Attributes
    ----------
    head
        Position and GTID of the last transaction that is known.
    selection
        The selection in words.
    confidence
        How the names of columns are known.
    server
        The server that the rows were compared with, if any.
    definitions
        By table, where its definition comes from.
    """

    head: str
    selection: str
    confidence: str = ""
    server: str = ""
    definitions: Mapping[str, str] = field(default_factory=dict)


def script(planner: Planner, plan: Plan, heading: Heading, ending: Ending = "commit") -> Iterator[str]:
    """Yield the lines of a script. The plan must be printable."""
    assert plan.is_printable
    yield from map(comment, _head(plan, heading, ending))
    yield ""
    yield from opening()
    if plan.options.by_transaction:
        for transaction, statements in planner.blocks():
            yield ""
            yield comment(f"Transaction {transaction}")
            yield from block(([text] for text in statements), ending)
    else:
        yield ""
        yield from block(planner.statements(plan), ending)
    yield ""
    yield from closing()


def opening(changes: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    """Yield the lines that keep the settings of the session and make those of `SESSION`, some of them changed."""
    for name in SESSION:
        yield f"SET @binloom_{name} = @@SESSION.{name};"
    for name, value in SESSION.items():
        yield f"SET SESSION {name} = {changes.get(name, value)};"


def closing() -> Iterator[str]:
    """Yield the lines that bring the settings of the session back."""
    for name in reversed(SESSION):
        yield f"SET SESSION {name} = @binloom_{name};"


def comment(text: str) -> str:
    """Return a text as a comment of one line: no character of it can end the line."""
    return "-- " + "".join(sign if sign.isprintable() else "?" for sign in visible(text))


def block(statements: Iterator[Sequence[str]], ending: Ending) -> Iterator[str]:
    """Yield the lines of a transaction that ends only if each of its statements changed, or found, one row."""
    yield "START TRANSACTION;"
    yield "SET @binloom_rows = 0;"
    count = 0
    for texts in statements:
        count += len(texts)
        yield "\n".join(map(_counted, texts))
    # A statement that cannot be prepared stops the client, and leaves nothing that could commit.
    told = f"'SELECT ''all {count} rows are as expected; the rehearsal changed nothing'' AS binloom'"
    verdict = "'COMMIT'" if ending == "commit" else told
    yield (
        f"SET @binloom_end = IF(@binloom_rows = {count}, {verdict}, "
        f"CONCAT('binloom: ', @binloom_rows, ' rows changed instead of {count}, so nothing is committed'));"
    )
    yield "PREPARE binloom_end FROM @binloom_end;"
    yield "EXECUTE binloom_end;"
    yield "DEALLOCATE PREPARE binloom_end;"
    # After an error, a client with --force goes on, and so does `source`. The next script would commit these rows.
    yield "ROLLBACK;"


def _counted(text: str) -> str:
    """Return a statement that counts its row."""
    parts = in_parts(text)
    sql = parts.statement
    if sql.startswith("SELECT "):
        counting = [f"SET @binloom_rows = @binloom_rows + ({sql} FOR UPDATE);"]
    else:
        counting = [f"{sql};", "SET @binloom_rows = @binloom_rows + ROW_COUNT();"]
    need = f"The next value has {parts.longest:,} bytes: the server's max_allowed_packet must be larger."
    return "\n".join([*([comment(need)] if parts.longest else []), *parts.before, *counting, *parts.after])


def _head(plan: Plan, heading: Heading, ending: Ending) -> Iterator[str]:
    verb = "takes back" if plan.options.direction is Direction.UNDO else "does again"
    selected = plan.selected
    what = f"{counted(selected.changes, 'row change')} of {counted(selected.transactions, 'transaction')}"
    staying = plan.left.count
    but = f", but not all of them: {subject(staying, 'row', 'stays as it is', 'stay as they are')}" if staying else ""
    yield f"binloom {plan.options.direction.value}: {verb} {what}{but}"
    yield f"source: {selected.source_id}"
    yield f"the log is known up to: {heading.head}"
    yield f"selection: {heading.selection or 'everything'}"
    if selected.rolled_back:
        yield f"left out, because they were rolled back: {', '.join(selected.rolled_back[:20])}"
    for name in selected.sequences:
        yield f"left alone, because it is a sequence: {'.'.join(name)}"
    if not selected.is_whole:
        yield f"the script {verb} only the selected rows of their transactions (--rows-only)"
    if plan.options.columns:
        yield f"only these columns are set (--columns): {', '.join(sorted(plan.options.columns))}"
    if plan.added:
        dependents = subject(len(plan.added), "transaction", "depends", "depend")
        yield f"{dependents} on it, and the script takes back these changes, too: {', '.join(plan.added[:20])}"
    for (table, kind), count in sorted(plan.counts.items()):
        if kind == "SELECT":
            yield f"rows of {table} that the server itself changes with their parents, and that are compared: {count}"
        else:
            yield f"{kind} {table}: {counted(count, 'row')}"
    for (table, change), count in plan.synthesized.items():
        rows = f"{counted(count, 'row')} of {table}"
        yield f"computed from earlier images, because the log does not contain it: {change} of {rows} by a cascade"
    for table, baseline in plan.baselines.items():
        yield f"values of {table} that images lack: {described_baseline(baseline)}"
    yield f"rows that need no statement: {plan.done}"
    yield f"rows with later changes in other columns; the script keeps these changes: {plan.disjoint}"
    if plan.conflicting:
        left = (
            "they are overwritten (--force)"
            if plan.options.mode is Mode.FORCE
            else "they are left out (--skip-conflicts)"
        )
        yield f"rows in conflict with later transactions: {plan.conflicting}; {left}"
    if plan.refused:
        yield f"rows that the script cannot change, and leaves out: {plan.refused}"
    if heading.server:
        yield f"rows compared with the server at {heading.server}: {plan.compared}"
    if plan.differing:
        yield f"rows that differ on the server, and are left out: {plan.differing}"
    for group in plan.left.groups[:20]:
        yield f"  {group}"
    if plan.options.mode is Mode.SKIP and plan.left.count:
        left = counted(plan.left.count, "selected row")
        yield f"not all of the selection: {left} {'is' if plan.left.count == 1 else 'are'} left out"
    for warning in plan.warnings:
        yield f"not in this script: {warning}"
    for table, origin in heading.definitions.items():
        yield f"definition of {table}: from {origin}"
    if heading.confidence:
        yield f"column names: {heading.confidence}"
    if ending == "rollback":
        yield "this is a rehearsal: it ends with ROLLBACK"
    yield "run it with the mysql or mariadb client, without that client's option --force"
    yield "if a row differs, the client stops with ERROR 1064 and the words 'binloom: ...', and nothing is committed"


def described_baseline(baseline: Baseline) -> str:
    """Return where values come from that a baseline has."""
    return f"from the baseline at {baseline.binlog_file}:{baseline.place.pos} and the changes since"
