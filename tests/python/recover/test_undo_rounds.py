"""Random transactions on real servers, some of them taken back: every table is as if these had never run."""

import os
import random
from pathlib import Path

import pytest

from recover.undo.classify import Wish
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.depth import at_depth
from tests.support.recover.undo_servers import marts, root_of, rows_of, run, undone
from tests.support.recover.undo_workload import TABLES, Workload, play, without_selection

ROUNDS = at_depth(4, 500)
FIRST = int(os.environ.get("BINLOOM_UNDO_FIRST", "0"))


@pytest.mark.parametrize("name", marked("mysql", "mysql56", "mariadb", "mariadb118"))
def test_tables_are_as_if_the_selected_transactions_had_never_run(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    undone_rounds = sum(_round(server, seed, tmp_path) for seed in range(FIRST, FIRST + ROUNDS))
    assert undone_rounds > 0


def _round(server: Server, seed: int, folder: Path) -> bool:
    """Play one round; return whether the undo was printed. A refused undo must name conflicts."""
    work = Workload(seed)
    transactions = work.transactions()
    server.execute("flush binary logs")
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("drop database if exists undo_rounds")
        cursor.execute("create database undo_rounds")
        cursor.execute("use undo_rounds")
        for table in TABLES.values():
            cursor.execute(table)
        play(cursor, transactions)
    log = server.flush()
    chosen = random.Random(seed).sample(range(len(transactions)), k=1 + seed % 3)
    marks = ", ".join(f"'{10000 + number}'" for number in chosen)
    condition = f"schema_name = 'undo_rounds' and table_name = 'k' and row_after['a'] in ({marks})"
    damaged = rows_of(server, "undo_rounds")
    plan, text = undone(server, [log], folder, condition, Wish(), against=root_of(server))
    assert not plan.differing, (seed, plan.differences)
    if not text:
        assert plan.conflicts or plan.problems or plan.refusals
        assert not [problem for problem in plan.problems if "not proved" in problem], (seed, plan.problems)
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
    with marts(server, [log], folder) as (connection, _):
        transactions_of = f"select transaction_pos from binloom.row_changes where {condition}"
        changes = connection.execute(
            f"select table_name, event_type, row_before, row_after, transaction_pos in ({transactions_of})"
            " from binloom.row_changes where schema_name = 'undo_rounds'"
            " order by start_pos, payload_ordinal, row_ordinal"
        ).fetchall()
    assert after == without_selection(changes, columns), (seed, text)
    assert plan.statements == 0 or after != damaged
    return True
