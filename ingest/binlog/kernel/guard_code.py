"""Machine code that checks the kernel's accesses; see `guard`. Only compiling, and a checked run, import it."""

from typing import Any, Final

from llvmlite import binding, ir
from numba import cfunc, types
from numba.core import cgutils
from numba.extending import intrinsic

from ingest.binlog.kernel import guard
from ingest.binlog.kernel.guard import (
    ADDRESS,
    ELSEWHERE,
    END,
    FOREIGN,
    IS_WRITABLE,
    LATEST,
    LENT,
    ROW_BYTES,
    SIZE,
    START,
    STATE,
    USED,
    WRITES,
)

_I64: Final = ir.IntType(64)
_SYMBOL: Final = "binloom_guard"


def guarded(builder: Any, address: Any, size: Any, *, writes: bool) -> Any:
    """Return code for the address to use: `address` itself, unless a checked build finds it foreign."""
    if not guard.IS_ON:
        return address
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_I64, [_I64] * 3), _SYMBOL)
    size = ir.Constant(_I64, size) if isinstance(size, int) else size
    return builder.call(function, [address, size, ir.Constant(_I64, int(writes))])


def guarded_blocks(builder: Any, target: Any, source: Any, size: Any) -> tuple[Any, Any, Any]:
    """Return code for target, source and size of a copy; the size is 0 when a checked build finds a block foreign."""
    if not guard.IS_ON:
        return target, source, size
    found = guarded(builder, target, size, writes=True), guarded(builder, source, size, writes=False)
    is_own = builder.and_(builder.icmp_unsigned("==", found[0], target), builder.icmp_unsigned("==", found[1], source))
    return *found, builder.select(is_own, size, ir.Constant(_I64, 0))


if guard.IS_ON:

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
        used = _word(STATE + 8 * USED)
        at = _word(STATE + 8 * LATEST)
        for _ in range(used + 1):
            if at >= used:
                at = 0
            row = LENT + at * ROW_BYTES
            start, end = _word(row + START), _word(row + END)
            is_inside = size > 0 and start <= address < end and size <= end - address
            if is_inside and (_word(row + IS_WRITABLE) or not writes):
                _set_word(STATE + 8 * LATEST, at)
                return address
            at += 1
        if _word(STATE + 8 * FOREIGN) == 0:
            _set_word(STATE + 8 * ADDRESS, address)
            _set_word(STATE + 8 * SIZE, size)
            _set_word(STATE + 8 * WRITES, writes)
        _set_word(STATE + 8 * FOREIGN, _word(STATE + 8 * FOREIGN) + 1)
        return ELSEWHERE

    binding.add_symbol(_SYMBOL, _guard.address)
