"""A home and a session for each module of tests that requests them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from ingest.warehouse.jvm import Jvm
from tests.support.in_process import restored_process
from tests.support.landing.spark import spark_home
from tests.support.one_jvm import keep_one_jvm

# Each run draws the same values and takes its time: no test may fail by chance, or because the machine is busy.
settings.register_profile(
    "binloom",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("binloom")

keep_one_jvm()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with slow files, so that none of them runs alone at the end of a run on several cores."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path in slow, item.path), reverse=True)


@pytest.fixture(autouse=True)
def no_traces() -> Iterator[None]:
    """Undo what a command changes in its process, so that no test depends on those before it."""
    with restored_process():
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all tests of a module; each test uses its own source."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def session(home: Path) -> Iterator[Any]:
    """The session of all tests of a module."""
    with spark_home(home) as live:
        yield live


@pytest.fixture
def own_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions of a test start a Java process, which ends with them; the shared process is set aside for that time."""
    from pyspark import SparkContext

    monkeypatch.setattr(Jvm, "outlives_sessions", False)
    monkeypatch.setattr(Jvm, "_kept", None)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(SparkContext, "_jvm", None)
