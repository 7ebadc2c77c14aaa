"""Random transactions on real servers, some of them taken back: every table is as if these had never run."""

import os
import random
from pathlib import Path

import pytest

from recover.selection.filters import Filters
from recover.sources.log import Log
from recover.undo.options import Mode, UndoOptions
from recover.undo.plan.planner import Plan
from recover.undo.print.script import script
from recover.undo.prove.against import LiveServer
from recover.undo.undoing import planned
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.depth import at_depth
from tests.support.recover.undo_servers import root_of, rows_of, run
from tests.support.recover.undo_workload import FIRST_MARK, TABLES, Workload, play, without_selection

ROUNDS = at_depth(4, 500)
FIRST = int(os.environ.get("BINLOOM_UNDO_FIRST", "0"))


@pytest.mark.parametrize("name", marked("mysql", "mysql56", "mariadb", "mariadb118"))
def test_tables_are_as_if_the_selected_transactions_had_never_run(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    undone_rounds = sum(_round(server, seed) for seed in range(FIRST, FIRST + ROUNDS))
    assert undone_rounds > 0


def _round(server: Server, seed: int) -> bool:
    """Play one round; return whether the undo was printed. A refused one must be possible without some rows."""
    work = Workload(seed)
    transactions = work.transactions()
    alterations = work.alterations(len(transactions)) if seed % 2 else {}
    server.execute("flush binary logs")
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("drop database if exists undo_rounds")
        cursor.execute("create database undo_rounds")
        cursor.execute("use undo_rounds")
        for table in TABLES.values():
            cursor.execute(table)
        alterations = play(cursor, transactions, alterations)
    path = server.flush()
    chosen = random.Random(seed).sample(range(len(transactions)), k=1 + seed % 3)
    marks = ", ".join(f"'{FIRST_MARK + number}'" for number in chosen)
    damaged = rows_of(server, "undo_rounds")
    with Log.of_whole_files([path], source_id="rounds").connection as connection:
        damage = [
            place
            for (place,) in connection.execute(
                "select binlog_file || ':' || transaction_pos from binloom.row_changes"
                f" where table_name = 'k' and event_type = 'INSERT' and row_after['a'] in ({marks})"
            ).fetchall()
        ]
        assert len(damage) == len(chosen)
        changes = connection.execute(
            "select table_name, event_type, row_before, row_after, binlog_file || ':' || transaction_pos in ?"
            " from binloom.row_changes where schema_name = 'undo_rounds'"
            " order by start_pos, payload_ordinal, row_ordinal",
            [damage],
        ).fetchall()
    plan, text = _script(server, path, damage, Mode.REFUSE)
    assert not plan.differing, (seed, plan.differences)
    if not text:
        assert plan.conflicts or plan.problems or plan.refusals
        assert not [problem for problem in plan.problems if "not proved" in problem], (seed, plan.problems)
        # The other rows are taken back without those that are in the way.
        plan, text = _script(server, path, damage, Mode.SKIP)
        assert text, (seed, plan.problems, plan.refusals, plan.conflicts)
        done = run(server, text)
        assert done.returncode == 0, (seed, done.stderr)
        return False
    done = run(server, text)
    after = rows_of(server, "undo_rounds")
    assert done.returncode == 0, (seed, done.stderr)
    columns = {
        table: [
            name
            for (name,) in server.execute(
                "select column_name from information_schema.columns where table_schema = 'undo_rounds'"
                f" and table_name = '{table}' order by ordinal_position"
            )
        ]
        for table in TABLES
    }
    assert after == without_selection(changes, columns, alterations), (seed, text)
    assert plan.statements == 0 or after != damaged
    return True


def _script(server: Server, path: Path, damage: list[str], mode: Mode) -> tuple[Plan, str]:
    log = Log.of_whole_files([path], source_id="rounds")
    with (
        log.connection,
        LiveServer(root_of(server)) as live,
        planned(log, Filters.of(transactions=damage), UndoOptions(mode=mode), server=live) as (planner, plan, heading),
    ):
        return plan, "\n".join(script(planner, plan, heading)) + "\n" if plan.is_printable else ""
