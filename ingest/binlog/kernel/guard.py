"""Checks that the kernel accesses only memory that Python lent it. Off in a normal run.

An address has no bounds. So a check that is missing in the kernel shows only when a hostile file exploits it, and then
as a crash or as silent damage. With BINLOOM_KERNEL_CHECKS=1 in the environment when this module is imported, every
load, store, copy and fill of the compiled kernel first looks up its address among the arrays that were passed to
`address_of`. An access outside of these arrays is not carried out, and `checked` raises `ForeignMemoryError` when the
kernel returns. Arrays that are not writeable may only be read. Decoding is then much slower.

Without the variable the functions here do nothing, and the compiled code is the same as without them. `guard_code`
puts the checks into the compiled code.
"""

import os
import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

IS_ON: Final = os.environ.get("BINLOOM_KERNEL_CHECKS") == "1"

P = ParamSpec("P")
R = TypeVar("R")

# Each lent array has a row of three words: its start, its end, and whether it is writeable.
_MOST_ARRAYS: Final = 1 << 16
ROW_BYTES: Final = 24
START, END, IS_WRITABLE = range(0, ROW_BYTES, 8)
_lent: Final = np.zeros((_MOST_ARRAYS if IS_ON else 1, 3), dtype=np.int64)
LENT: Final = int(_lent.ctypes.data)
_rows: Final[dict[int, int]] = {}
_free_rows: Final[list[int]] = []

# The words of the state: rows in use, the row found last, number of foreign accesses, and the first foreign access.
_state: Final = np.zeros(6, dtype=np.int64)
STATE: Final = int(_state.ctypes.data)
USED, LATEST, FOREIGN, ADDRESS, SIZE, WRITES = range(6)

_elsewhere: Final = np.zeros(64, dtype=np.uint8)
ELSEWHERE: Final = int(_elsewhere.ctypes.data)
"""Address for a fixed-width access that would otherwise touch foreign memory."""


class ForeignMemoryError(AssertionError):
    """The kernel tried to access memory that it was not lent: one of its checks is missing or wrong."""


def address_of(array: npt.NDArray[Any], size: int | None = None) -> int:
    """Return the address of an array and lend the array to the kernel; if `size` is given, only its first bytes."""
    if IS_ON:
        _lend(array, array.nbytes if size is None else size)
    return int(array.ctypes.data)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return a kernel function that raises `ForeignMemoryError` after a foreign access; unchanged in a normal run."""
    if not IS_ON:
        return function

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        result = function(*args, **kwargs)
        if _state[FOREIGN]:
            _state[FOREIGN] = 0
            raise ForeignMemoryError(_first_access())
        return result

    return call


def _lend(array: npt.NDArray[Any], size: int) -> None:
    key = id(array)
    if key not in _rows:
        _rows[key] = _free_rows.pop() if _free_rows else int(_state[USED])
        _state[USED] = max(_state[USED], _rows[key] + 1)
        weakref.finalize(array, _take_back, key)
    start = int(array.ctypes.data)
    _lent[_rows[key]] = (start, start + size, array.flags.writeable)


def _take_back(key: int) -> None:
    row = _rows.pop(key)
    _lent[row] = 0
    _free_rows.append(row)


def _first_access() -> str:
    address, size, writes = (int(_state[word]) for word in (ADDRESS, SIZE, WRITES))
    used = _lent[: int(_state[USED])]
    start, end, _ = used[np.abs(used[:, :2] - address).min(axis=1).argmin()].tolist()
    return (
        f"the kernel {'writes' if writes else 'reads'} {size} bytes at {address:#x}; the nearest array is of"
        f" {end - start} bytes, and this is {address - start} bytes behind its start"
    )
