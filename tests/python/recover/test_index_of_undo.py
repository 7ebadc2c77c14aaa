"""An index lets an undo, a report and sums read less of binlog files, and changes no answer."""

import random
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import binloom
from recover.selection.filters import Filters
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.depth import at_depth
from tests.support.in_process import binloom_here
from tests.support.recover.indexed import answer, indexed, undos

# A parent with children, a table that is renamed and altered, a table for each of many transactions, and a trigger.
WORKLOAD = (
    "create database apart",
    "use apart",
    "create table p (id int primary key, code varchar(9) character set utf8mb4, j json, unique key (code))",
    "create table c (id int primary key, p_id int, foreign key (p_id) references p (id) on delete cascade)",
    "create table former (id int primary key, v int)",
    "create table hot (id int primary key auto_increment, v int)",
    "insert into p values (1, 'one', '{\"a\": 1}'), (2, 'two', '{}'), (3, 'three', null)",
    "insert into c values (10, 1), (11, 2), (12, 3)",
    "insert into former values (1, 1), (2, 2)",
    *[f"insert into hot (v) values ({number})" for number in range(20)],
    "flush binary logs",
    *[f"update hot set v = v + 100 where id = {number}" for number in range(1, 20)],
    "update former set v = 10 where id = 1",
    "rename table former to latter",
    "begin", "update latter set v = 11 where id = 1", "insert into hot (v) values (7)", "commit",
    "delete from p where id = 3",
    "flush binary logs",
    "alter table latter add column w int default 5",
    *[f"update hot set v = v + 100 where id = {number}" for number in range(1, 20)],
    "update latter set v = 12 where id = 1",
    "update p set code = 'uno' where id = 1",
    "update p set code = 'one' where id = 2",
    "delete from c where id = 11",
    "flush binary logs",
    *[f"update hot set v = v + 100 where id = {number}" for number in range(1, 20)],
)  # fmt: skip


@dataclass(frozen=True)
class Logs:
    """The logs of the workload, their index, and the tables that they leave."""

    files: Sequence[Path]
    index: Path
    schema: Path


@pytest.fixture(scope="module", params=marked("mysql", deep=("mariadb", "mariadb118")))
def logs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Logs:
    server: Server = request.getfixturevalue(f"{request.param}_server")
    folder = tmp_path_factory.mktemp("apart")
    server.execute("drop database if exists apart")
    server.flush()
    first = server.binlogs()[-1]
    server.execute(*WORKLOAD)
    last = server.flush()
    files = [Path(shutil.copy(file, folder)) for file in server.binlogs() if first <= file <= last]
    indexed(files, folder / "index")
    return Logs(files, folder / "index", server.snapshot_dir(folder / "schema"))


def asked(logs: Logs, *question: object) -> str:
    """Ask with and without the index; return how much was read with it."""
    expected = binloom_here(*question, "--files", *logs.files)
    found = binloom_here(*question, "--index-dir", logs.index, "--files", *logs.files)
    lines = found.stderr.splitlines(keepends=True)
    told = [line for line in lines if line.startswith(("binloom: read ", "binloom: the index of "))]
    others = "".join(line for line in lines if line not in told)
    assert (found.stdout, found.returncode, others) == (expected.stdout, expected.returncode, expected.stderr), question
    return "".join(told)


def share(told: str) -> float:
    """Return the part of the files that was read."""
    read, whole, _ = re.findall(r"([\d.]+) (KB|MB|bytes)", told)
    units = {"bytes": 1, "KB": 1e3, "MB": 1e6}
    return float(read[0]) * units[read[1]] / (float(whole[0]) * units[whole[1]])


def test_an_index_changes_no_undo(logs: Logs) -> None:
    _, whole = answer(logs.files, Filters())
    assert whole is not None
    for number, question in enumerate(undos(whole, random.Random(5), at_depth(6, 60))):
        given = ("--snapshot-dir", logs.schema) if number % 2 else ()
        asked(logs, *question, *given)


@pytest.mark.parametrize(
    ("filters", "most"),
    [
        (("--table", "apart.former"), 0.6),
        # With a transaction that changed `hot`, too.
        (("--table", "apart.latter", "--key", "1", "--skip-conflicts"), 1),
        (("--table", "apart.p", "--type", "DELETE"), 0.5),
        (("--table", "apart.p", "--type", "DELETE", "--with-cascades"), 0.5),
        (("--table", "apart.c", "--type", "DELETE"), 0.5),
        (("--table", "apart.hot", "--key", "3", "--skip-conflicts"), 1),
    ],
)
def test_an_undo_reads_only_its_tables(filters: tuple[str, ...], most: float, logs: Logs) -> None:
    assert 0 < share(asked(logs, "undo", *filters)) <= most


@pytest.mark.parametrize(
    "question", [("undo", "--table", "apart.p", "--type", "DELETE"), ("top", "--table", "apart.c")]
)
def test_a_file_whose_index_is_missing_or_fails_is_read_whole(
    question: tuple[str, ...], logs: Logs, tmp_path: Path
) -> None:
    some = shutil.copytree(logs.index, tmp_path / "index")
    (some / f"{logs.files[2].name}.binloom-index").unlink()
    assert 0.2 < share(asked(replace(logs, index=some), *question)) < 1
    damaged = [Path(shutil.copy(file, tmp_path)) for file in logs.files]
    data = bytearray(damaged[0].read_bytes())
    for place in range(600, len(data) - 600, 100):
        data[place] ^= 0xFF
    damaged[0].write_bytes(data)
    assert f"the index of {damaged[0]} is not used" in asked(replace(logs, files=damaged), *question)


@pytest.mark.parametrize(
    "filters", [("--table", "apart.p"), ("--table", "apart.former", "--key", "1"), ("--file", "x")]
)
def test_an_index_changes_no_report(filters: tuple[str, ...], logs: Logs, tmp_path: Path) -> None:
    pages = []
    for options in ((), ("--index-dir", logs.index)):
        page = tmp_path / "incident.html"
        page.unlink(missing_ok=True)
        done = binloom_here("incident", *filters, "--output", page, *options, "--files", *logs.files)
        told = re.sub("binloom: read .*\n", "", done.stderr)
        text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "now", page.read_text()) if page.exists() else ""
        pages.append((done.returncode, told, text))
    assert pages[0] == pages[1]


def test_an_index_changes_no_object(logs: Logs) -> None:
    def answers(**where: Any) -> list[list[str]]:
        where["files"] = logs.files
        with binloom.undo(table="apart.c", type="DELETE", **where) as undo:
            script = [*undo.script()]
        found = [
            binloom.changes(table="apart.p", key=1, **where),
            binloom.transactions(table="apart.c", **where),
            binloom.history("apart.latter", 1, **where),
            binloom.state("apart.c", **where),
            binloom.schema_changes("apart.latter", **where),
        ]
        noted = [[str(note) for note in one.notes] for one in (*found, undo)]
        told = [[note for note in notes if note.startswith("read ")] for notes in noted]
        assert all(len(notes) == len(where) - 1 for notes in told)
        shares.extend(share(note) for notes in told for note in notes)
        return [
            *([note for note in notes if not note.startswith("read ")] for notes in noted),
            *([repr(row) for row in one] for one in found),
            script,
        ]

    shares = list[float]()
    assert answers(index_dir=logs.index) == answers()
    assert max(shares) < 0.6


@pytest.mark.parametrize("filters", [("--table", "apart.former"), ("--schema", "apart"), ("--since", "{middle}"), ()])
def test_an_index_changes_no_sums(filters: tuple[str, ...], logs: Logs) -> None:
    _, whole = answer(logs.files, Filters())
    assert whole is not None
    (middle,) = whole.connection.execute("select max(event_timestamp) from binloom.row_changes").fetchone() or ("",)
    question = [one.format(middle=f"{middle:%F %T}") for one in filters]
    told = asked(logs, "top", "--format", "json", *question)
    assert bool(told) == bool(filters)
    if "apart.former" in filters:
        assert 0 < share(told) < 0.6
