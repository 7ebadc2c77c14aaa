"""Settings of Spark that a user adds in a file."""

from pathlib import Path

import pytest

from ingest.errors import StoreError, UsageError
from ingest.warehouse.masters import is_local, require_master
from ingest.warehouse.settings_file import CONF_VARIABLE, users_settings
from ingest.warehouse.spark import spark_settings, uses_embedded_metastore
from tests.servers.ports import ReservedPort

POSTGRESQL = "spark.hadoop.javax.jdo.option.ConnectionURL"


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "spark.conf"
    monkeypatch.setenv(CONF_VARIABLE, str(path))
    return path


def test_without_a_file_there_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CONF_VARIABLE, raising=False)
    assert users_settings() == {}


def test_the_file_has_the_format_of_spark(conf: Path) -> None:
    conf.write_text(
        "# a comment\n\n! another\nspark.master   spark://a:7077,b:7077\nspark.cores.max=2\nspark.a: x y\n"
        "spark.executorEnv.X = a=b\n"
    )
    assert users_settings() == {
        "spark.master": "spark://a:7077,b:7077",
        "spark.cores.max": "2",
        "spark.a": "x y",
        "spark.executorEnv.X": "a=b",
    }


@pytest.mark.parametrize("line", ["spark.master", "spark.master =", "master local", "spark.a b\\nc", "spark.a b\\"])
def test_a_line_that_is_no_setting_is_named(conf: Path, line: str) -> None:
    conf.write_text(f"# one\n{line}\n")
    with pytest.raises(UsageError, match=rf"^Line 2 of {conf} is not a setting of Spark\. Write one setting a line"):
        users_settings()


def test_a_file_that_is_missing_is_named(conf: Path) -> None:
    with pytest.raises(UsageError, match=f"^{CONF_VARIABLE} names {conf}, which cannot be read: No such file"):
        users_settings()


def test_settings_of_the_user_replace_those_of_binloom(conf: Path, tmp_path: Path) -> None:
    conf.write_text(f"{POSTGRESQL} jdbc:postgresql://db/metastore\nspark.driver.extraJavaOptions -Dx=y\n")
    settings = spark_settings(tmp_path)
    assert settings[POSTGRESQL] == "jdbc:postgresql://db/metastore"
    assert settings["spark.driver.extraJavaOptions"].endswith("-Duser.timezone=UTC -Dx=y")
    assert not uses_embedded_metastore(settings)


def test_a_metastore_of_a_server_is_not_embedded(conf: Path, tmp_path: Path) -> None:
    conf.write_text("spark.sql.shuffle.partitions 3\n")
    assert uses_embedded_metastore(spark_settings(tmp_path))
    conf.write_text("spark.hadoop.hive.metastore.uris thrift://metastore:9083\n")
    assert not uses_embedded_metastore(spark_settings(tmp_path))


def test_a_driver_listens_on_its_machine_only_if_the_session_is_local(conf: Path, tmp_path: Path) -> None:
    conf.write_text("spark.master spark://a:7077\n")
    assert "spark.driver.host" not in spark_settings(tmp_path)
    conf.write_text("spark.master local[2]\n")
    assert spark_settings(tmp_path)["spark.driver.host"] == "127.0.0.1"


@pytest.mark.parametrize("master", ["spark://127.0.0.1:{port}", "spark://127.0.0.1:{port},nowhere", "spark://"])
def test_a_master_that_does_not_answer_is_named(master: str) -> None:
    with ReservedPort() as port:
        address = master.format(port=port.number)
        with pytest.raises(StoreError, match=f"^No Spark master answers at {address}. Start it, or set BINLOOM_SPARK"):
            require_master(address)


def test_other_masters_are_left_to_spark() -> None:
    require_master("local[2]")
    require_master("yarn")
    require_master("k8s://https://nowhere:6443")
    assert is_local("local[*]") and is_local("local") and not is_local("yarn")
