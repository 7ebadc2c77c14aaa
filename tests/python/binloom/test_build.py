"""`binloom build`: it builds what is new, says so when nothing is, and looks again until a signal comes.

The tests of this module are one story, told in order on one home. Only builds that get a signal are separate processes.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.request import urlopen

import pytest

from binloom.commands.build import build_models
from binloom.commands.build_places import build_place
from binloom.commands.build_record import build_inputs, record_good_build
from binloom.commands.project import BUILD
from ingest.landing.compact import FEW_FILES
from ingest.warehouse.files import data_files, read_rows, replacing
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.names import source_stem
from ingest.warehouse.spark import SparkLaunch
from ingest.warehouse.tables import SEGMENTS
from tests.support.command_line import COMMAND, assert_sentence
from tests.support.in_process import binloom_here
from tests.support.models.copied import copied_project
from tests.support.models.invoke import run_dbt
from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import PROJECT, SAMPLES

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SAMPLE = SAMPLES / "shop-mysql"
# A mart of few models.
MART = ("--select", "+binlog_files")
WITHOUT_JAVA = {"JAVA_HOME": "/nonexistent"}
NOTHING_NEW = "nothing has landed since the last good build at "


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty home."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project."""
    return copied_project(tmp_path_factory.mktemp("copy"), {})


def run(home: Path, *arguments: object, env: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """Run a command in this process."""
    return binloom_here(*arguments, env={"BINLOOM_HOME": str(home), **(env or {})})


def test_an_empty_home_has_nothing_to_build(home: Path) -> None:
    result = run(home, "build", env=WITHOUT_JAVA)
    assert_sentence(result, 0, "nothing has landed in this home yet. Land a binlog with `binloom ingest`")
    assert not (home / "metastore").exists()


def test_a_target_is_for_dbt_itself(home: Path) -> None:
    assert_sentence(run(home, "build", "--target", "thrift"), 2, "cannot take --target", "Run `dbt build`")


def test_what_landed_is_built_once(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    landed = run(home, "ingest", "--source", "shop", "--binlog-dir", SAMPLE, "--files", "binlog.000001")
    assert landed.returncode == 0, landed.stderr
    built = run(home, "build", *MART)
    assert built.returncode == 0, built.stderr
    assert re.search(r"built in [0-9.]+ s: \d+ models and tests are good", built.stdout)
    again = run(home, "build", *MART, env=WITHOUT_JAVA)
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith(NOTHING_NEW)


def test_a_thrift_server_that_is_away_is_named(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    target = {"BINLOOM_TARGET": "thrift", "BINLOOM_THRIFT_PORT": str(port)}
    built = run(home, "build", *MART, env={**target, **WITHOUT_JAVA})
    assert_sentence(built, 3, rf"No Thrift server answers at 127\.0\.0\.1:{port}\. Start it, or set BINLOOM_THRIFT")


def test_another_metastore_has_builds_of_its_own(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(project)
    conf = tmp_path / "spark.conf"
    conf.write_text("spark.hadoop.javax.jdo.option.ConnectionURL jdbc:postgresql://db/metastore\n")
    elsewhere = {"BINLOOM_SPARK_CONF": str(conf), **WITHOUT_JAVA}
    assert_sentence(run(home, "build", *MART, env=elsewhere), 3, "Java")
    monkeypatch.setenv("BINLOOM_SPARK_CONF", str(conf))
    with contextlib.ExitStack() as stack:
        place = build_place(home, stack)
    record_good_build(home, [*BUILD, *MART], build_inputs(home), [], place.name)
    assert run(home, "build", *MART, env=elsewhere).stdout.startswith(NOTHING_NEW)
    conf.write_text("spark.hadoop.javax.jdo.option.ConnectionURL jdbc:postgresql://other/metastore\n")
    assert_sentence(run(home, "build", *MART, env=elsewhere), 3, "Java")


def test_other_options_are_another_build(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    assert_sentence(run(home, "build", "--select", "row_changes", env=WITHOUT_JAVA), 3, "Java")


def test_a_changed_model_is_new_and_a_failed_build_is_not_good(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    model = project / "models" / "marts" / "binlog_files.sql"
    text = model.read_text()
    model.write_text("select no_such_column from {{ ref('stg_binlog__binlog_files') }}\n")
    failed = run(home, "build", *MART)
    assert failed.returncode == 1, failed.stderr
    assert re.search(r"failed after .*\n  fails: binlog_files: .*no_such_column", failed.stdout)
    assert "Traceback" not in failed.stderr + failed.stdout
    # It is not taken for a good build, so it is tried again: here without Java.
    assert_sentence(run(home, "build", *MART, env=WITHOUT_JAVA), 3, "Java")
    model.write_text(text)
    # The last good build had this text, but models before the failed one may have others now.
    assert_sentence(run(home, "build", *MART, env=WITHOUT_JAVA), 3, "Java")
    assert run(home, "build", *MART).returncode == 0
    assert run(home, "build", *MART, env=WITHOUT_JAVA).stdout.startswith(NOTHING_NEW)


def test_a_run_of_dbt_alone_is_repaired_by_the_next_build(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows whether it was killed, and between which tables."""
    monkeypatch.chdir(project)
    monkeypatch.setenv("BINLOOM_HOME", str(home))
    with SparkLaunch(home, short_lived=True) as launch:
        launch.session()
        run_dbt(home, "test", "--select", "binlog_files", project=project)
        assert run(home, "build", *MART, env=WITHOUT_JAVA).stdout.startswith(NOTHING_NEW)
        run_dbt(home, "run", "--select", "stg_binlog__binlog_files", project=project)
    assert_sentence(run(home, "build", *MART, env=WITHOUT_JAVA), 3, "Java")
    # Builds with other options are as good as before when this one is.
    assert run(home, "build", "--select", "stg_binlog__sources").returncode == 0
    assert run(home, "build", *MART).returncode == 0
    for options in (MART, ("--select", "stg_binlog__sources")):
        assert run(home, "build", *options, env=WITHOUT_JAVA).stdout.startswith(NOTHING_NEW)


@contextlib.contextmanager
def building(home: Path, *options: str) -> Iterator["subprocess.Popen[str]"]:
    """`binloom build --every` as a process whose first build is forced."""
    process = subprocess.Popen(
        [*COMMAND, "build", "--every", "500ms", "--force", *options, *MART],
        cwd=PROJECT,
        env={**os.environ, "BINLOOM_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def ended_after_patience(process: "subprocess.Popen[str]") -> Iterator[None]:
    """Kill a process that takes too long, so that nobody waits for its next line for ever."""
    timer = threading.Timer(PATIENCE_SECONDS, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def wait_until_nothing_is_new(home: Path, process: "subprocess.Popen[str]") -> None:
    """Wait until the process has built everything."""
    while not run(home, "build", *MART, env=WITHOUT_JAVA).stdout.startswith(NOTHING_NEW):
        assert process.poll() is None
        time.sleep(0.1)


def add_small_files_of_states(home: Path) -> None:
    """Add as many files to `segments` as many landings do: copies, because a state that comes twice counts once."""
    folder = raw_table_dir("segments", home)
    landed = next(iter(data_files(folder)))
    for number in range(FEW_FILES + 1):
        with replacing(folder / f"{source_stem('shop')}-copy-{number}.parquet") as path:
            shutil.copy(landed, path)


def test_builds_follow_each_landing_until_a_signal_comes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)
    with building(home, "--metrics-port", "0") as process, ended_after_patience(process):
        assert process.stdout is not None
        address = re.search(r"http://\S+", process.stdout.readline())
        assert address is not None
        assert "built in" in process.stdout.readline()
        folder = SAMPLE / "schema"
        snapshot = run(home, "snapshot", "--source", "shop", "--from-dir", folder, env=WITHOUT_JAVA)
        assert snapshot.returncode == 0, snapshot.stderr
        assert "built in" in process.stdout.readline()
        # A snapshot is several files. If a look has met some of them, another build follows.
        wait_until_nothing_is_new(home, process)
        states = read_rows(SEGMENTS, home)
        add_small_files_of_states(home)
        wait_until_nothing_is_new(home, process)
        # Only this process can merge them, because it holds the metastore; its own merging is nothing new.
        assert len(list(data_files(raw_table_dir("segments", home)))) <= FEW_FILES
        assert sorted(map(str, read_rows(SEGMENTS, home))) == sorted(map(str, states))
        figures = urlopen(address[0]).read().decode()
        builds = re.search(r'binloom_builds_total{outcome="good"} (\d+)\.0', figures)
        assert builds is not None and int(builds[1]) >= 2, figures
        assert "binloom_last_good_build_timestamp_seconds" in figures
        time.sleep(1.5)
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=PATIENCE_SECONDS)
        assert (process.returncode, rest.count("built in")) == (0, int(builds[1]) - 2), rest
        assert len(rest.splitlines()) == int(builds[1]) - 2, rest


def test_other_commands_work_between_builds(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)
    monkeypatch.setenv("BINLOOM_HOME", str(home))
    with building(home) as process, ended_after_patience(process):
        assert process.stdout is not None
        assert "built in" in process.stdout.readline()
        with SparkLaunch(home, short_lived=True) as launch:
            launch.session()
            checked = run(home, "quality")
            assert checked.returncode == 0, checked.stderr
            # The build after a run of dbt alone repairs what that may have left: now it must wait.
            states = run_dbt(home, "run", "--select", "stg_binlog__sources")
            assert set(states.values()) == {"success"}
            assert re.search(rf"\(pid \d+\) holds the metastore in {re.escape(str(home))}", process.stdout.readline())
        assert "built in" in process.stdout.readline()
        assert process.poll() is None


class SignalWhenDeleted:
    """Sends SIGTERM while it is deleted, when Python loses the exception of a handler."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_whose_exception_is_lost_ends_the_builds(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builds = 0

    def build(self: object, everything: bool) -> int:
        nonlocal builds
        builds += 1
        assert builds == 1, "it builds again after the signal"
        SignalWhenDeleted()
        return 0

    monkeypatch.setenv("BINLOOM_HOME", str(home))
    monkeypatch.setattr("binloom.commands.build._Builder._build", build)
    # There is always something new.
    monkeypatch.setattr("binloom.commands.build.build_inputs", lambda home: str(builds))
    assert build_models(MART, every=0.01, force=True) == 0


def test_an_interrupted_build_is_made_again(home: Path) -> None:
    log = home / "logs" / "dbt.log"
    log.unlink()
    with building(home) as process:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (log.exists() and "Began running node model" in log.read_text(errors="replace")):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0, printed
        assert "the build was interrupted; the next one repairs what it left" in printed
        assert "Traceback" not in printed
    built = run(home, "build", "--force", *MART)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "built in" in built.stdout
