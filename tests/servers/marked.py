"""Parameters of tests that run on several servers."""

from typing import Any

import pytest


def marked(*names: str) -> list[Any]:
    """Return the markers of servers as parameters, each with its mark; `{name}_server` is the server's fixture."""
    return [pytest.param(name, marks=getattr(pytest.mark, name)) for name in names]
