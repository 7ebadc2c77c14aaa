"""A home and a session of its own for each module of tests that asks for them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.landing.spark import spark_home


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take long, so that none of them is alone at the end of a run on several cores."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path in slow, item.path), reverse=True)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all tests of a module; each has a source of its own."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def session(home: Path) -> Iterator[Any]:
    """The session of all tests of a module."""
    with spark_home(home) as live:
        yield live
