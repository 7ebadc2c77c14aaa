"""Checks that the kernel accesses only memory that Python lent it. Off in a normal run.

An address has no bounds. So a check that is missing in the kernel shows only when a hostile file exploits it, and then
as a crash or as silent damage. With BINLOOM_KERNEL_CHECKS=1 in the environment when this module is imported, every
load, store, copy and fill of the compiled kernel first looks up its address among the arrays that were passed to
`address_of`. An access outside of these arrays is not carried out, and `checked` raises `ForeignMemoryError` when the
kernel returns. Arrays that are not writeable may only be read. Decoding is then much slower.

Without the variable the functions here do nothing, and the compiled code is the same as without them.
"""

import os
import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt
from llvmlite import binding, ir
from numba import cfunc, types
from numba.core import cgutils
from numba.extending import intrinsic

IS_ON: Final = os.environ.get("BINLOOM_KERNEL_CHECKS") == "1"

P = ParamSpec("P")
R = TypeVar("R")

_I64: Final = ir.IntType(64)
_SYMBOL: Final = "binloom_guard"

# Each lent array has a row of three words: its start, its end, and whether it is writeable.
_MOST_ARRAYS: Final = 1 << 16
_ROW_BYTES: Final = 24
_START, _END, _IS_WRITABLE = range(0, _ROW_BYTES, 8)
_lent: Final = np.zeros((_MOST_ARRAYS if IS_ON else 1, 3), dtype=np.int64)
_LENT: Final = int(_lent.ctypes.data)
_rows: Final[dict[int, int]] = {}
_free_rows: Final[list[int]] = []

# The words of the state: rows in use, the row found last, number of foreign accesses, and the first foreign access.
_state: Final = np.zeros(6, dtype=np.int64)
_STATE: Final = int(_state.ctypes.data)
_USED, _LATEST, _FOREIGN, _ADDRESS, _SIZE, _WRITES = range(6)

_elsewhere: Final = np.zeros(64, dtype=np.uint8)
_ELSEWHERE: Final = int(_elsewhere.ctypes.data)
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
        if _state[_FOREIGN]:
            _state[_FOREIGN] = 0
            raise ForeignMemoryError(_first_access())
        return result

    return call


def guarded(builder: Any, address: Any, size: Any, *, writes: bool) -> Any:
    """Return code for the address to use: `address` itself, unless a checked build finds it foreign."""
    if not IS_ON:
        return address
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_I64, [_I64] * 3), _SYMBOL)
    size = ir.Constant(_I64, size) if isinstance(size, int) else size
    return builder.call(function, [address, size, ir.Constant(_I64, int(writes))])


def guarded_blocks(builder: Any, target: Any, source: Any, size: Any) -> tuple[Any, Any, Any]:
    """Return code for target, source and size of a copy; the size is 0 when a checked build finds a block foreign."""
    if not IS_ON:
        return target, source, size
    found = guarded(builder, target, size, writes=True), guarded(builder, source, size, writes=False)
    is_own = builder.and_(builder.icmp_unsigned("==", found[0], target), builder.icmp_unsigned("==", found[1], source))
    return *found, builder.select(is_own, size, ir.Constant(_I64, 0))


def _lend(array: npt.NDArray[Any], size: int) -> None:
    key = id(array)
    if key not in _rows:
        _rows[key] = _free_rows.pop() if _free_rows else int(_state[_USED])
        _state[_USED] = max(_state[_USED], _rows[key] + 1)
        weakref.finalize(array, _take_back, key)
    start = int(array.ctypes.data)
    _lent[_rows[key]] = (start, start + size, array.flags.writeable)


def _take_back(key: int) -> None:
    row = _rows.pop(key)
    _lent[row] = 0
    _free_rows.append(row)


def _first_access() -> str:
    address, size, writes = (int(_state[word]) for word in (_ADDRESS, _SIZE, _WRITES))
    used = _lent[: int(_state[_USED])]
    start, end, _ = used[np.abs(used[:, :2] - address).min(axis=1).argmin()].tolist()
    return (
        f"the kernel {'writes' if writes else 'reads'} {size} bytes at {address:#x}; the nearest array is of"
        f" {end - start} bytes, and this is {address - start} bytes behind its start"
    )


if IS_ON:

    @intrinsic
    def _word(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.load(builder.inttoptr(args[0], _I64.as_pointer()))

        return types.int64(types.int64), codegen

    @intrinsic
    def _set_word(typingctx: Any, address: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            builder.store(args[1], builder.inttoptr(args[0], _I64.as_pointer()))
            return context.get_dummy_value()

        return types.none(types.int64, types.int64), codegen

    @cfunc(types.int64(types.int64, types.int64, types.int64))
    def _guard(address: Any, size: Any, writes: Any) -> Any:
        """Return the address if the kernel may access `size` bytes there, else a harmless address."""
        if size == 0:
            return address
        used = _word(_STATE + 8 * _USED)
        at = _word(_STATE + 8 * _LATEST)
        for _ in range(used + 1):
            if at >= used:
                at = 0
            row = _LENT + at * _ROW_BYTES
            start, end = _word(row + _START), _word(row + _END)
            is_inside = size > 0 and start <= address < end and size <= end - address
            if is_inside and (_word(row + _IS_WRITABLE) or not writes):
                _set_word(_STATE + 8 * _LATEST, at)
                return address
            at += 1
        if _word(_STATE + 8 * _FOREIGN) == 0:
            _set_word(_STATE + 8 * _ADDRESS, address)
            _set_word(_STATE + 8 * _SIZE, size)
            _set_word(_STATE + 8 * _WRITES, writes)
        _set_word(_STATE + 8 * _FOREIGN, _word(_STATE + 8 * _FOREIGN) + 1)
        return _ELSEWHERE

    binding.add_symbol(_SYMBOL, _guard.address)
