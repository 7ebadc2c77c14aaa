"""`binloom doctor` names what is in the way, and changes nothing."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ingest.warehouse.locks import SourceLock
from tests.servers import Server
from tests.servers.accounts import create_account
from tests.servers.marked import marked
from tests.support.command_line import assert_sentence, binloom
from tests.support.in_process import binloom_here
from tests.support.masking.shop import MASKS, land_shop, set_masks


def findings(result: "subprocess.CompletedProcess[str]") -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def levels(result: "subprocess.CompletedProcess[str]", subject: str) -> list[str]:
    return [one["level"] for one in findings(result) if one["subject"] == subject]


def told(result: "subprocess.CompletedProcess[str]", level: str) -> str:
    return " ".join(one["message"] for one in findings(result) if one["level"] == level)


def examined(home: Path, *options: object, **environment: str) -> "subprocess.CompletedProcess[str]":
    return binloom_here("doctor", "--format", "json", *options, home=home, env=environment)


def test_a_person_reads_a_conclusion(tmp_path: Path) -> None:
    result = binloom_here("doctor", home=tmp_path / "home")
    assert (result.returncode, result.stderr) == (0, "")
    # The machine may have little space left.
    conclusion = r"Commands will run\.|0 errors and \d warnings?\. Commands will run\."
    assert re.fullmatch(conclusion, result.stdout.splitlines()[-1])
    assert not (tmp_path / "home").exists()


def test_a_java_that_is_missing_is_an_error(tmp_path: Path) -> None:
    result = examined(tmp_path, JAVA_HOME=str(tmp_path))
    assert result.returncode == 1
    assert levels(result, "java") == ["error"] and "Install a Java runtime" in told(result, "error")


@pytest.mark.parametrize(("memory", "words"), [("900t", "the machine has"), ("much", "a number with a unit")])
def test_memory_that_is_not_there_is_an_error(tmp_path: Path, memory: str, words: str) -> None:
    result = examined(tmp_path, BINLOOM_DRIVER_MEMORY=memory)
    assert result.returncode == 1 and levels(result, "memory") == ["error"] and words in told(result, "error")


def test_a_home_that_others_can_read_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "warehouse").mkdir()
    (tmp_path / "warehouse").chmod(0o755)
    result = examined(tmp_path)
    assert result.returncode == 0
    assert levels(result, "privacy") == ["warning"] and str(tmp_path / "warehouse") in told(result, "warning")


def test_masks_that_cannot_be_used_are_an_error_and_changed_ones_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    set_masks(home, monkeypatch)
    land_shop(home)
    assert levels(examined(home), "masks") == ["good"]
    set_masks(home, monkeypatch, MASKS.replace("keep_first: 1", "keep_first: 2"))
    changed = examined(home)
    assert changed.returncode == 0 and levels(changed, "masks") == ["warning", "good"]
    assert "in shop.customers.full_name. Such rows" in told(changed, "warning")
    other_key = examined(home, SHOP_MASK_KEY="another key of many bytes")
    assert "in shop.customers.email, shop.customers.full_name. Such" in told(other_key, "warning")
    no_key = examined(home, SHOP_MASK_KEY="")
    assert no_key.returncode == 1 and levels(no_key, "masks") == ["error"]
    assert "SHOP_MASK_KEY with their key is empty" in told(no_key, "error")
    (home / "masks.yml").unlink()
    assert "now there is no file with masks" in told(examined(home), "error")


def test_a_home_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "warehouse").mkdir(mode=0o500)
    result = binloom("doctor", "--format", "json", home=tmp_path, obey_permissions=True)
    assert result.returncode == 1 and levels(result, "home") == ["error"]


def test_a_source_that_is_being_landed_is_named(tmp_path: Path) -> None:
    with SourceLock(tmp_path, "shop", "run"):
        result = examined(tmp_path)
    assert f"Process {os.getpid()} is landing a source (shop-" in told(result, "good")
    assert levels(examined(tmp_path), "in use") == []


def test_a_cluster_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    result = examined(tmp_path, BINLOOM_TARGET="thrift", BINLOOM_THRIFT_PORT="9")
    assert result.returncode == 1 and levels(result, "cluster") == ["error"]


def test_a_master_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    result = examined(tmp_path, BINLOOM_SPARK_MASTER="spark://127.0.0.1:9")
    assert result.returncode == 1 and levels(result, "spark session") == ["error"]
    assert "No Spark master answers at spark://127.0.0.1:9." in told(result, "error")


def test_a_session_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    conf = tmp_path / "spark.conf"
    conf.write_text(
        "spark.driver.extraClassPath /nowhere/postgresql.jar\nspark.hadoop.javax.jdo.option.ConnectionPassword secret\n"
    )
    conf.chmod(0o644)
    result = examined(tmp_path / "home", BINLOOM_SPARK_CONF=str(conf))
    assert result.returncode == 1 and levels(result, "spark session") == ["error", "warning"]
    assert "/nowhere/postgresql.jar, which does not exist" in told(result, "error")
    assert f"chmod 600 {conf}" in told(result, "warning") and "secret" not in result.stdout


def test_settings_of_a_session_that_change_answers_are_errors(tmp_path: Path) -> None:
    conf = tmp_path / "spark.conf"
    conf.write_text(
        "spark.sql.session.timeZone Asia/Tokyo\n"
        "spark.sql.sources.commitProtocolClass org.apache.spark.internal.io.cloud.PathOutputCommitProtocol\n"
        "spark.sql.ansi.enabled true\n"
    )
    result = examined(tmp_path / "home", BINLOOM_SPARK_CONF=str(conf))
    assert result.returncode == 1 and levels(result, "spark session") == ["error", "error"]
    for words in ("hours would be local hours", "may add rows to a part instead of replacing them"):
        assert words in told(result, "error")
    assert f"Write UTC in {conf}, or remove the setting." in told(result, "error")


def test_a_login_without_a_server_is_refused(tmp_path: Path) -> None:
    result = binloom_here("doctor", "--user", "ada", home=tmp_path)
    assert_sentence(result, 2, "--user goes with --server", "Give --server HOST")


class TestServer:
    @pytest.fixture(params=marked("mysql", "mariadb", "mysql56"))
    def server(self, request: pytest.FixtureRequest) -> Server:
        server: Server = request.getfixturevalue(f"{request.param}_server")
        return server

    def test_a_server_that_can_be_followed_is_good(self, server: Server, tmp_path: Path) -> None:
        account = create_account(server, tmp_path, "examined")
        place = f"127.0.0.1:{server.port}"
        result = examined(tmp_path, "--server", place, "--defaults-file", account.defaults_file)
        assert result.returncode == 0, result.stdout
        for subject in ("server", "server clock", "server privileges", "server logs"):
            assert levels(result, subject) == ["good"], result.stdout

    def test_privileges_that_are_missing_are_named(self, server: Server, tmp_path: Path) -> None:
        account = create_account(server, tmp_path, "examined", ["select"])
        place = f"127.0.0.1:{server.port}"
        result = examined(tmp_path, "--server", place, "--defaults-file", account.defaults_file)
        assert result.returncode == 1
        assert levels(result, "server privileges") == ["warning"] and levels(result, "server logs") == ["error"]
        assert "REPLICATION SLAVE" in told(result, "warning") and "grant" in told(result, "error")
        assert account.password not in result.stdout + result.stderr

    # MySQL 5.6 counts in days.
    @pytest.mark.parametrize("server", marked("mysql", "mariadb"), indirect=True)
    def test_logs_that_are_deleted_soon_are_a_warning(self, server: Server, tmp_path: Path) -> None:
        name = "binlog_expire_logs_seconds"
        ((kept,),) = server.execute(f"select @@global.{name}")
        account = create_account(server, tmp_path, "examined")
        server.execute(f"set global {name} = 7200")
        try:
            place = f"127.0.0.1:{server.port}"
            result = examined(tmp_path, "--server", place, "--defaults-file", account.defaults_file)
        finally:
            server.execute(f"set global {name} = {kept}")
        assert levels(result, "server logs") == ["warning"] and "after 2.0 hours" in told(result, "warning")
