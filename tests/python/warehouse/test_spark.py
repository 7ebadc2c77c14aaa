"""Java, the metastore's lock, and their messages to users."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ingest.errors import JavaMissingError, MetastoreLockedError, StoreError
from ingest.warehouse.home import prepare_home
from ingest.warehouse.jvm import find_java
from ingest.warehouse.spark import SparkLaunch, metastore_holder, spark_errors, spark_settings
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow


def fake_java(folder: Path, release: str) -> Path:
    """Make a folder that looks like a Java runtime."""
    (folder / "bin").mkdir(parents=True)
    java = folder / "bin" / "java"
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    (folder / "release").write_text(release)
    return folder


def test_no_java_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissingError, match=r"no `java` is on the PATH.*apt-get install openjdk-17-jre-headless"):
        find_java()


def test_java_home_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaMissingError, match="JAVA_HOME is"):
        find_java()


@pytest.mark.parametrize(("release", "version"), [('JAVA_VERSION="11.0.2"\n', 11), ('JAVA_VERSION="1.8.0_292"\n', 8)])
def test_java_too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, release: str, version: int) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", release)))
    with pytest.raises(JavaMissingError, match=f"is Java {version}, but Spark needs 17 or newer"):
        find_java()


def test_java_that_does_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = fake_java(tmp_path / "jdk", "")
    (folder / "release").unlink()
    monkeypatch.setenv("JAVA_HOME", str(folder))
    with pytest.raises(JavaMissingError, match="does not run"):
        find_java()


@pytest.mark.usefixtures("own_jvm")
def test_jvm_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = fake_java(tmp_path / "jdk", 'JAVA_VERSION="17.0.1"\n')
    (folder / "bin" / "java").write_text("#!/bin/sh\necho 'no room for the heap' >&2\nexit 1\n")
    monkeypatch.setenv("JAVA_HOME", str(folder))
    with pytest.raises(StoreError, match="no room for the heap"):
        SparkLaunch(tmp_path / "home").context()


def test_home_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(StoreError, match="binloom cannot write to its folder"):
        prepare_home(tmp_path / "home")


def test_a_disk_that_is_full_under_spark_is_told_in_a_sentence(tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    def fail() -> None:
        with spark_errors(tmp_path):
            raise PySparkException("org.apache.spark.SparkException: Job aborted.\n… No space left on device\n…")

    with pytest.raises(
        StoreError, match=f"^Spark cannot write to {tmp_path}: No space left on device. Free some space"
    ):
        fail()


def test_settings_keep_everything_under_the_home(tmp_path: Path) -> None:
    settings = spark_settings(tmp_path)
    paths = [value for key, value in settings.items() if key.endswith(".dir") or "URL" in key]
    assert len(paths) >= 3
    assert all(str(tmp_path) in value for value in paths)
    assert settings["spark.sql.session.timeZone"] == "UTC"


def test_metastore_held_by_another_process(tmp_path: Path) -> None:
    prepare_home(tmp_path)
    (tmp_path / "metastore").mkdir()
    (tmp_path / "metastore" / "dbex.lck").write_bytes(b"\0")
    assert metastore_holder(tmp_path) is None
    # Derby in a JVM uses the same kind of lock on this file.
    holding = (
        "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX); print('held', flush=True)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", f"{holding}; sys.stdin.read()", str(tmp_path / "metastore" / "dbex.lck")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert metastore_holder(tmp_path) == holder.pid
        with pytest.raises(MetastoreLockedError, match=f"pid {holder.pid}") as caught:
            SparkLaunch(tmp_path)
        assert caught.value.pid == holder.pid
    finally:
        holder.communicate(timeout=PATIENCE_SECONDS)
    assert metastore_holder(tmp_path) is None


def test_metastore_that_was_never_finished_is_made_anew(tmp_path: Path) -> None:
    # A process was killed while Derby created the metastore: Derby could neither open nor create it.
    half, whole = tmp_path / "half" / "metastore", tmp_path / "whole" / "metastore"
    for folder in (half, whole):
        (folder / "seg0").mkdir(parents=True)
        (folder / "dbex.lck").write_bytes(b"\0")
    (whole / "service.properties").write_text("derby.serviceProtocol=…")
    for folder in (half, whole):
        SparkLaunch(folder.parent).stop()
    assert (half.exists(), whole.exists()) == (False, True)


_TWO_SESSIONS = """
import sys
from pathlib import Path
from ingest.warehouse.spark import SparkLaunch, metastore_holder
home = Path(sys.argv[1])
for _ in range(2):
    with SparkLaunch(home, short_lived=True) as launch:
        launch.session().sql("create schema if not exists one").collect()
        assert metastore_holder(home), "the metastore is not held"
    assert metastore_holder(home) is None, "the metastore is still held"
print("done")
"""


@pytest.mark.spark
def test_a_session_is_quiet_lets_go_of_the_metastore_and_can_follow_another(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home, temporary = tmp_path / "a home with blanks", tmp_path_factory.mktemp("temporary")
    java = f"{os.environ.get('JDK_JAVA_OPTIONS', '')} -Djava.io.tmpdir={temporary}"
    environment = {**os.environ, "PYTHONPATH": os.getcwd(), "JDK_JAVA_OPTIONS": java}
    done = subprocess.run(
        [sys.executable, "-c", _TWO_SESSIONS, str(home)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        env=environment,
        cwd=tmp_path,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)
    assert (home / "warehouse" / "one.db").is_dir() or (home / "metastore").is_dir()
    # No files are left beside the home: no metastore_db, derby.log, spark-warehouse.
    assert [path.name for path in tmp_path.iterdir()] == [home.name]
    # Nor in Java's folder for temporary files.
    assert [path.name for path in temporary.iterdir()] == []
