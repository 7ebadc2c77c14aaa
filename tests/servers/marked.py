"""Parameters of tests that run on several servers."""

from typing import Any

import pytest


def marked(*names: str, deep: tuple[str, ...] = ()) -> list[Any]:
    """Return the markers of servers as parameters, each with its mark; `{name}_server` is the server's fixture.

    Parameters
    ----------
    deep
        Servers that repeat what another one of the names shows, and run with `make deep` only.
    """
    return [
        pytest.param(name, marks=[getattr(pytest.mark, name), *([pytest.mark.deep] if name in deep else [])])
        for name in (*names, *deep)
    ]
