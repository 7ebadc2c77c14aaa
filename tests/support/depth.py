"""How often tests repeat what is random: a few times in each run, and many times with `make deep`."""

import os
from typing import Final

VARIABLE: Final = "BINLOOM_DEPTH"
_QUICK, _FULL = "quick", "full"


def at_depth(quick: int, full: int) -> int:
    """Return how often to repeat something: `quick` times, or `full` times with BINLOOM_DEPTH=full."""
    return full if is_full() else quick


def is_full() -> bool:
    """Return whether tests run that other tests of each run already cover in part."""
    depth = os.environ.get(VARIABLE) or _QUICK
    if depth not in (_QUICK, _FULL):
        raise ValueError(f"{VARIABLE} is {depth!r}: give {_QUICK} or {_FULL}")
    return depth == _FULL
