"""`binloom baseline`: rows of a live server or of a dump become files of the raw tables, all or nothing."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ingest.warehouse.files import read_rows
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.tables import BASELINE_ROWS, BASELINES, SCHEMA_SNAPSHOTS
from tests.servers import Server
from tests.servers.accounts import create_account
from tests.servers.managed import PRIVILEGES, without_lock
from tests.support.in_process import binloom_here
from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import PROJECT

SHOP = (
    "drop database if exists baseline",
    "create database baseline",
    "create table baseline.orders (id int, region varchar(9), total decimal(9,2), primary key (region, id))",
    "insert into baseline.orders values (1, 'eu', 9.50), (2, 'us', null)",
    "create table baseline.empty (id int primary key)",
)
LARGE = (
    *SHOP,
    "create table baseline.large (id int primary key, v varchar(255))",
    "insert into baseline.large with recursive n as (select 1 as id union all select id + 1 from n where id < 1000)"
    " select id, repeat('v', 255) from n",
    *(f"insert into baseline.large select id + {1000 << step}, v from baseline.large" for step in range(4)),
)
DUMP = """\
-- MySQL dump 10.13  Distrib 9.7.4
/*!50503 SET NAMES utf8mb4 */;
/*!40103 SET TIME_ZONE='+00:00' */;
-- CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='binlog.000007', SOURCE_LOG_POS=1234;
CREATE TABLE `orders` (`id` int NOT NULL, `note` text, `bytes` blob, PRIMARY KEY (`id`));
INSERT INTO `orders` VALUES (1,'it\\'s; a \\n line',0x00ff),(2,NULL,NULL);
INSERT INTO `orders` VALUES (3,'','');
-- Dump completed on 2026-11-20 12:00:00
"""


def rows_of(home: Path) -> list[list[str | None]]:
    return [row["row_values"] for row in read_rows(BASELINE_ROWS, home)]


@pytest.mark.mysql
def test_rows_of_a_server_are_landed_with_their_position(mysql_server: Server, tmp_path: Path) -> None:
    mysql_server.execute(*SHOP)
    place = ("--server", "127.0.0.1", "--port", mysql_server.port, "--user", "root", "--schemas", "baseline")
    home = {"BINLOOM_HOME": str(tmp_path)}
    done = binloom_here("baseline", "--source", "shop", *place, "--max-rate", "10M", env=home)
    assert done.returncode == 0, done.stderr
    assert "shop: landed a baseline of 2 tables with 2 rows at binlog." in done.stdout
    tables = {row["table_name"]: row for row in read_rows(BASELINES, tmp_path)}
    assert tables["orders"]["column_names"] == ["id", "region", "total"]
    assert tables["orders"]["primary_key_ordinals"] == [0, 1]
    assert {name: row["row_count"] for name, row in tables.items()} == {"orders": 2, "empty": 0}
    assert rows_of(tmp_path) == [["1", "eu", "9.50"], ["2", "us", None]]
    (snapshot,) = read_rows(SCHEMA_SNAPSHOTS, tmp_path)
    for row in tables.values():
        for column in ("snapshot_id", "binlog_file", "binlog_pos", "gtid_executed"):
            assert row[column] == snapshot[column]
    assert {row["position_proof"] for row in tables.values()} == {"read_lock"}


@pytest.mark.mysql
def test_a_killed_baseline_leaves_nothing_that_is_seen(mysql_server: Server, tmp_path: Path) -> None:
    mysql_server.execute(*LARGE)
    words = ["baseline", "--source", "shop", "--server", f"127.0.0.1:{mysql_server.port}", "--user", "root"]
    words += ["--tables", "baseline.orders,baseline.large"]
    environment = {**os.environ, "BINLOOM_HOME": str(tmp_path), "PYTHONPATH": str(PROJECT)}
    slow = subprocess.Popen([sys.executable, "-m", "binloom.cli", *words, "--max-rate", "200k"], env=environment)
    folder = raw_table_dir(BASELINE_ROWS.name, tmp_path)
    until = time.monotonic() + PATIENCE_SECONDS
    while not (folder.is_dir() and any(folder.iterdir())) and time.monotonic() < until and slow.poll() is None:
        time.sleep(0.02)
    slow.send_signal(signal.SIGKILL)
    slow.wait()
    left = {path.name for path in folder.iterdir()}
    assert left
    assert read_rows(BASELINES, tmp_path) == []
    done = binloom_here(*words, env={"BINLOOM_HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert left.isdisjoint(path.name for path in folder.iterdir())
    assert len(rows_of(tmp_path)) == 16002 == sum(row["row_count"] for row in read_rows(BASELINES, tmp_path))


@pytest.mark.mysql
@pytest.mark.parametrize("granted", ["without a lock", "with a lock"])
def test_a_position_is_proved_from_the_log_without_a_lock(mysql_server: Server, tmp_path: Path, granted: str) -> None:
    mysql_server.execute(*SHOP)
    is_refused = granted == "without a lock"
    privileges = without_lock(PRIVILEGES["rds"]) if is_refused else PRIVILEGES["rds"]
    account = create_account(mysql_server, tmp_path, "admin", privileges)
    words = ("baseline", "--source", "shop", "--server", f"127.0.0.1:{mysql_server.port}", "--schemas", "baseline")
    login = ("--defaults-file", account.defaults_file, *(() if is_refused else ("--no-lock",)))
    done = binloom_here(*words, *login, env={"BINLOOM_HOME": str(tmp_path / "home")})
    assert done.returncode == 0, done.stderr
    assert ("because the server grants no lock" in done.stderr) == is_refused
    assert "proved from the log: all transactions before binlog." in done.stderr
    assert rows_of(tmp_path / "home") == [["1", "eu", "9.50"], ["2", "us", None]]
    assert {row["position_proof"] for row in read_rows(BASELINES, tmp_path / "home")} == {"log"}


@pytest.mark.mysql
def test_a_connection_that_the_server_ends_leaves_nothing_that_is_seen(mysql_server: Server, tmp_path: Path) -> None:
    # More than what is on the way between server and client.
    mysql_server.execute(
        *LARGE, *(f"insert into baseline.large select id + {1000 << step}, v from baseline.large" for step in (4, 5))
    )
    account = create_account(mysql_server, tmp_path, "slow", without_lock(PRIVILEGES["azure"]))
    words = ["baseline", "--source", "shop", "--server", f"127.0.0.1:{mysql_server.port}", "--schemas", "baseline"]
    words += ["--defaults-file", str(account.defaults_file), "--max-rate", "3M"]
    home = tmp_path / "home"
    slow = subprocess.Popen(
        [sys.executable, "-m", "binloom.cli", *words],
        env={**os.environ, "BINLOOM_HOME": str(home), "PYTHONPATH": str(PROJECT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    own = "select id from information_schema.processlist where user = 'slow'"
    until = time.monotonic() + PATIENCE_SECONDS
    while not mysql_server.execute(f"{own} and info like '%`large`%'") and time.monotonic() < until:
        time.sleep(0.02)
    for (number,) in mysql_server.execute(own):
        mysql_server.execute(f"kill {number}")
    _, said = slow.communicate(timeout=PATIENCE_SECONDS)
    assert slow.returncode == 3, said
    assert re.search("closed the connection|Lost connection to MySQL server", said) and "Traceback" not in said
    assert read_rows(BASELINES, home) == [] == read_rows(SCHEMA_SNAPSHOTS, home)


@pytest.mark.parametrize("target", ["local", "thrift"])
def test_a_dump_is_landed_once(tmp_path: Path, target: str) -> None:
    """A baseline is landed without Spark, so no Thrift server is asked."""
    path = tmp_path / "shop.sql"
    path.write_text(DUMP)
    words = ("baseline", "--source", "shop", "--from-dump", path, "--schema", "shop")
    home = {"BINLOOM_HOME": str(tmp_path / "home"), "BINLOOM_TARGET": target}
    done = binloom_here(*words, env=home)
    assert (done.returncode, done.stdout) == (
        0,
        "shop: landed a baseline of 1 table with 3 rows at binlog.000007:1234\n",
    ), done.stderr
    assert rows_of(tmp_path / "home") == [["1", "it's; a \n line", "0x00FF"], ["2", None, None], ["3", "", "0x"]]
    assert "already landed a baseline" in binloom_here(*words, env=home).stdout
    assert len(rows_of(tmp_path / "home")) == 3


def test_options_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    for words, reason in (
        ((), "None of --server and --from-dump is given"),
        (("--server", "h", "--from-dump", "f"), "Both --server and --from-dump are given"),
        (("--from-dump", "f", "--max-rate", "1M"), "--max-rate goes with --server"),
        (("--server", "h", "--schema", "s"), "--schema goes with --from-dump"),
        (("--from-dump", "f", "--no-lock"), "--no-lock goes with --server"),
        (("--server", "h", "--max-rate", "0"), "--max-rate is 0"),
        (("--from-dump", tmp_path / "none.sql"), "cannot be read"),
    ):
        done = binloom_here("baseline", "--source", "s", *words, env={"BINLOOM_HOME": str(tmp_path)})
        assert (done.returncode, reason in done.stderr) == (2, True), done.stderr
