"""Loads, stores and unsigned arithmetic on plain 64-bit addresses.

The kernel passes addresses (int64) instead of arrays: an array argument takes seven machine words, and helper functions
with several such arguments run at half the speed. An address has no bounds, so every caller checks before it reads.
Buffers have `layout.PADDING` readable bytes behind their end, so that a fixed-width read may be checked afterwards.
`guard` has a build of the kernel that tests this.

All values are int64. Unsigned 64-bit numbers use the same bits, because numba turns a mix of int64 and uint64 into
floats. Where the sign bit matters, use `udiv`, `urem`, `ult` and `shr`.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ingest.binlog.kernel.guard_code import guarded, guarded_blocks

_I64 = ir.IntType(64)


def _pointer(builder, address, kind):
    return builder.inttoptr(address, kind.as_pointer())


def _load(bits: int, *, swap: bool = False, signed: bool = False):
    """Return an intrinsic that loads `bits` bits from an unaligned address, widened to int64."""
    kind = ir.IntType(bits)

    @intrinsic
    def load(typingctx, address):
        def codegen(context, builder, signature, args):
            address = guarded(builder, args[0], bits // 8, writes=False)
            value = builder.load(_pointer(builder, address, kind), typ=kind)
            value.align = 1
            if swap:
                value = builder.bswap(value)
            if bits == 64:
                return value
            return builder.sext(value, _I64) if signed else builder.zext(value, _I64)

        return types.int64(types.int64), codegen

    return load


def _store(bits: int):
    """Return an intrinsic that stores the low `bits` bits of a value at an unaligned address."""
    kind = ir.IntType(bits)

    @intrinsic
    def store(typingctx, address, value):
        def codegen(context, builder, signature, args):
            value = args[1] if bits == 64 else builder.trunc(args[1], kind)
            address = guarded(builder, args[0], bits // 8, writes=True)
            instruction = builder.store(value, _pointer(builder, address, kind))
            instruction.align = 1
            return context.get_dummy_value()

        return types.none(types.int64, types.int64), codegen

    return store


def _binary(operation: str):
    @intrinsic
    def binary(typingctx, left, right):
        def codegen(context, builder, signature, args):
            return getattr(builder, operation)(args[0], args[1])

        return types.int64(types.int64, types.int64), codegen

    return binary


load_u8 = _load(8)
load_u16 = _load(16)
load_u32 = _load(32)
load_i8 = _load(8, signed=True)
load_i16 = _load(16, signed=True)
load_i32 = _load(32, signed=True)
load_64 = _load(64)
load_u16_be = _load(16, swap=True)
load_u32_be = _load(32, swap=True)
load_64_be = _load(64, swap=True)

store_8 = _store(8)
store_16 = _store(16)
store_32 = _store(32)
store_64 = _store(64)

udiv = _binary("udiv")
urem = _binary("urem")
shr = _binary("lshr")


@intrinsic
def ult(typingctx, left, right):
    """Return unsigned `left < right`."""

    def codegen(context, builder, signature, args):
        return builder.icmp_unsigned("<", args[0], args[1])

    return types.boolean(types.int64, types.int64), codegen


@intrinsic
def multiply_high(typingctx, left, right):
    """Return the high 64 bits of the unsigned 128-bit product."""

    def codegen(context, builder, signature, args):
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), _I64)

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def copy(typingctx, target, source, size):
    """Copy `size` bytes between blocks that do not overlap."""

    def codegen(context, builder, signature, args):
        byte = ir.IntType(8)
        target, source, size = guarded_blocks(builder, *args)
        cgutils.raw_memcpy(builder, _pointer(builder, target, byte), _pointer(builder, source, byte), size, 1, align=1)
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, types.int64), codegen


@intrinsic
def copy_32(typingctx, target, source):
    """Copy exactly 32 bytes in one vector move: for short strings, where both sides have room for 32 bytes."""

    def codegen(context, builder, signature, args):
        kind = ir.VectorType(ir.IntType(8), 32)
        source = guarded(builder, args[1], 32, writes=False)
        target = guarded(builder, args[0], 32, writes=True)
        value = builder.load(_pointer(builder, source, kind), typ=kind)
        value.align = 1
        instruction = builder.store(value, _pointer(builder, target, kind))
        instruction.align = 1
        return context.get_dummy_value()

    return types.none(types.int64, types.int64), codegen


@intrinsic
def fill(typingctx, target, byte, size):
    """Set `size` bytes to `byte`."""

    def codegen(context, builder, signature, args):
        kind = ir.IntType(8)
        target, _, size = guarded_blocks(builder, args[0], args[0], args[2])
        cgutils.memset(builder, _pointer(builder, target, kind), size, builder.trunc(args[1], kind))
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, types.int64), codegen


@intrinsic
def call_zstd(typingctx, function, state, target, capacity, source, size):
    """Call ZSTD_decompressDCtx by its address; return the bytes written to `target`, or a number above any size."""

    def codegen(context, builder, signature, args):
        function, state, target, capacity, source, size = args
        target, _, capacity = guarded_blocks(builder, target, target, capacity)
        source = guarded(builder, source, size, writes=False)
        kind = ir.FunctionType(_I64, [_I64] * 5)
        return builder.call(_pointer(builder, function, kind), [state, target, capacity, source, size])

    return types.int64(*[types.int64] * 6), codegen
