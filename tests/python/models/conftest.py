"""A warehouse for each module, and dbt in this process, on the session that wrote it."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ingest.warehouse.home import warehouse_dir
from ingest.warehouse.spark import SparkLaunch
from tests.support.models.invoke import run_dbt
from tests.support.models.raw import RawTables


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty $BINLOOM_HOME."""
    folder = tmp_path_factory.mktemp("binloom")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BINLOOM_HOME", str(folder))
        yield folder


@pytest.fixture(scope="module")
def spark(home: Path) -> Iterator[Any]:
    """The only session of a module."""
    with SparkLaunch(home, short_lived=True) as launch:
        yield launch.session()


@pytest.fixture(scope="module")
def raw(spark: Any, home: Path) -> RawTables:
    """Empty raw tables."""
    return RawTables(spark, warehouse_dir(home))


@pytest.fixture(scope="module")
def dbt(spark: Any, home: Path) -> Callable[..., dict[str, str]]:
    """Return a function that runs a dbt command and returns the status of every node that ran."""
    return partial(run_dbt, home)
