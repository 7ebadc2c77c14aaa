"""binloom as others install it: the wheel in an empty environment, without Spark, numba and the clone."""

import os
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from setup import PROJECT as PARTS
from tests.support.command_line import binloom
from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import PROJECT, SAMPLES
from tools.wheel import build

pytestmark = pytest.mark.slow

SAMPLE = SAMPLES / "shop-mysql"
LOG = SAMPLE / "binlog.000001"


@dataclass(frozen=True)
class Distributions:
    """A wheel, and the source distribution that it was built from."""

    wheel: Path
    source: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    folder = tmp_path_factory.mktemp("dist")
    wheel = build(folder)
    (source,) = folder.glob("*.tar.gz")
    return Distributions(wheel, source)


@dataclass(frozen=True)
class Environment:
    """An environment with the wheel and what it depends on, and an empty folder to work in."""

    folder: Path
    work: Path

    @property
    def packages(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    def run(self, *arguments: object) -> "subprocess.CompletedProcess[str]":
        """Run binloom as a person does who has nothing else."""
        return subprocess.run(
            [self.folder / "bin" / "binloom", *map(str, arguments)],
            cwd=self.work,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.work)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )


@pytest.fixture(scope="module")
def environment(built: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("environment")
    uv = Path(sys.executable).with_name("uv")
    index = _index()
    variables = {**os.environ, **({"UV_DEFAULT_INDEX": index} if index else {})}
    subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, folder], check=True)
    install = [uv, "pip", "install", "--quiet", "--python", folder / "bin" / "python"]
    # The lock's hashes are checked for every package that comes from the index.
    locked = ["--constraint", PROJECT / "requirements.lock", built.wheel]
    done = subprocess.run([*install, *locked], env=variables, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = f"the wheel could not be installed: {done.stderr.strip()[-500:]}"
        assert os.environ.get("BINLOOM_REQUIRE_SERVERS") != "1" and "fetch" in reason, reason
        pytest.skip(reason)
    return Environment(folder, tmp_path_factory.mktemp("work"))


def _index() -> str:
    """Return the index that variables or pip's settings name, as `.ci/setup` does."""
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    settings = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    named = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
    return next((os.environ[name] for name in named if os.environ.get(name)), settings)


def test_both_distributions_have_the_project_and_the_plugin(built: Distributions) -> None:
    files = {path for part in PARTS for path in _files(PROJECT / part)}
    with zipfile.ZipFile(built.wheel) as wheel:
        in_wheel = set(wheel.namelist())
    assert {f"binloom/project/{file}" for file in files} <= in_wheel
    data = {"ingest/binlog/text/charset_tables/collations.tsv", "binloom/site/assets/page.css"}
    assert {"dbt_binloom.py"} | data <= in_wheel
    assert not [name for name in in_wheel if name.startswith(("tests/", "tools/")) or "__pycache__" in name]
    with tarfile.open(built.source) as source:
        in_source = {name.partition("/")[2] for name in source.getnames()}
    assert files | {"dbt_plugin/dbt_binloom.py", "setup.py"} <= in_source


def _files(part: Path) -> list[str]:
    found = [part] if part.is_file() else [path for path in part.rglob("*") if path.is_file()]
    return [str(path.relative_to(PROJECT)) for path in found if "__pycache__" not in path.parts]


def test_files_are_read_and_asked_in_an_empty_folder(environment: Environment) -> None:
    before = _listed(environment.packages)
    assert not {"numba", "llvmlite", "pyspark", "dbt", "great_expectations"} & {name.split("/")[0] for name in before}
    inspected = environment.run("inspect", LOG)
    assert (inspected.returncode, inspected.stderr) == (0, "") and "473 of 473 events verified" in inspected.stdout
    decoded = environment.run("decode", LOG)
    assert (decoded.returncode, decoded.stderr) == (0, "")
    assert decoded.stdout == binloom("decode", LOG).stdout
    asked = environment.run("query", "--files", LOG, "--snapshot-dir", SAMPLE / "schema", "--table", "shop.orders")
    assert asked.returncode == 0 and "INSERT shop.orders 1001" in asked.stdout, asked.stderr
    undone = environment.run(
        *("undo", "--files", SAMPLE / "binlog.000002", "--snapshot-dir", SAMPLE / "schema"),
        *("--transaction", "binlog.000002:20069"),
    )
    assert undone.returncode == 0 and undone.stdout.count("\nUPDATE `shop`.`orders`") == 52, undone.stderr
    assert list(environment.work.iterdir()) == [] and _listed(environment.packages) == before


def test_what_has_landed_is_asked_without_a_build(environment: Environment) -> None:
    landed = environment.run("ingest", "--source", "shop", "--binlog-dir", SAMPLE, "--all")
    named = environment.run("snapshot", "--source", "shop", "--from-dir", SAMPLE / "schema")
    assert (landed.returncode, named.returncode) == (0, 0), landed.stderr + named.stderr
    state = environment.run("state", "shop.orders", "--as-of", "binlog.000002:20069", "--format", "csv")
    assert state.returncode == 0 and state.stdout.count("\n1") == 53, state.stderr
    assert "`binloom build` makes answers faster" in state.stderr
    assert [path.name for path in environment.work.iterdir()] == [".binloom"]


def test_what_is_missing_is_told(environment: Environment) -> None:
    built = environment.run("demo")
    assert built.returncode == 3 and "Run `pip install 'binloom[spark]'`" in built.stderr
    examined = environment.run("doctor")
    assert examined.returncode == 0 and "pyspark is missing" in examined.stdout, examined.stdout
    assert "The decoder is compiled for this processor." in examined.stdout


def _listed(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if "__pycache__" not in path.parts}
