"""The work that a function does, counted, because times differ from machine to machine."""

import sys
from collections.abc import Callable
from types import FrameType


def calls_during(function: Callable[[], object]) -> int:
    """Return the number of function calls that calling a function takes."""
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls
