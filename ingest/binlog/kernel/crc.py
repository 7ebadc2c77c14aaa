"""CRC-32 (zlib's polynomial, the one of binlog event checksums).

It folds with carry-less multiplication, after "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
Instruction" (Intel, 2009): four 128-bit lanes fold 64 bytes a step. Slicing-by-8 tables process the folded 128 bits and
the remaining bytes. A CPU without pclmulqdq uses only these tables.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from ingest.binlog.kernel.guard_code import guarded
from ingest.binlog.kernel.memory import load_u8, load_u32
from ingest.binlog.kernel.processor import target

HAS_CLMUL = "+pclmul" in target()[1].split(",")

_FOLD_64_BYTES = (0x0154442BD4, 0x01C6E41596)
_FOLD_16_BYTES = (0x01751997D0, 0x00CCAA009E)


@intrinsic
def _fold(typingctx, address, blocks, crc, target):
    """Fold `blocks` (at least 4) 16-byte blocks at `address` into the 16 bytes at `target`.

    `crc` is the state to start from. The 16 bytes represent everything folded: the plain CRC over them from state 0
    gives the state after the blocks.
    """

    def codegen(context, builder, signature, args):
        address, blocks, crc, target = args
        i64, i32 = ir.IntType(64), ir.IntType(32)
        address = guarded(builder, address, builder.mul(blocks, ir.Constant(i64, 16)), writes=False)
        target = guarded(builder, target, 16, writes=True)
        vector = ir.VectorType(i64, 2)
        clmul = builder.module.declare_intrinsic(
            "llvm.x86.pclmulqdq", (), ir.FunctionType(vector, [vector, vector, ir.IntType(8)])
        )

        def constant(pair):
            return ir.Constant(vector, [ir.Constant(i64, word) for word in pair])

        def load(base, offset):
            pointer = builder.inttoptr(builder.add(base, ir.Constant(i64, offset)), vector.as_pointer())
            value = builder.load(pointer, typ=vector)
            value.align = 1
            return value

        def fold(state, keys, data):
            low = builder.call(clmul, [state, keys, ir.Constant(ir.IntType(8), 0x00)])
            high = builder.call(clmul, [state, keys, ir.Constant(ir.IntType(8), 0x11)])
            return builder.xor(builder.xor(low, high), data)

        start = builder.insert_element(ir.Constant(vector, [ir.Constant(i64, 0)] * 2), crc, ir.Constant(i32, 0))
        lanes = [load(address, 16 * lane) for lane in range(4)]
        lanes[0] = builder.xor(lanes[0], start)
        entry = builder.block
        wide_head, wide_body = builder.append_basic_block("wide.head"), builder.append_basic_block("wide.body")
        narrow = builder.append_basic_block("narrow")
        narrow_head, narrow_body = builder.append_basic_block("narrow.head"), builder.append_basic_block("narrow.body")
        done = builder.append_basic_block("done")
        four, sixty_four = ir.Constant(i64, 4), ir.Constant(i64, 64)
        first_address, first_left = builder.add(address, sixty_four), builder.sub(blocks, four)
        builder.branch(wide_head)

        builder.position_at_end(wide_head)
        at, left = builder.phi(i64), builder.phi(i64)
        states = [builder.phi(vector) for _ in range(4)]
        at.add_incoming(first_address, entry)
        left.add_incoming(first_left, entry)
        for state, lane in zip(states, lanes, strict=True):
            state.add_incoming(lane, entry)
        builder.cbranch(builder.icmp_signed(">=", left, four), wide_body, narrow)

        builder.position_at_end(wide_body)
        keys = constant(_FOLD_64_BYTES)
        for lane, state in enumerate(states):
            state.add_incoming(fold(state, keys, load(at, 16 * lane)), wide_body)
        at.add_incoming(builder.add(at, sixty_four), wide_body)
        left.add_incoming(builder.sub(left, four), wide_body)
        builder.branch(wide_head)

        builder.position_at_end(narrow)
        keys = constant(_FOLD_16_BYTES)
        joined = states[0]
        for state in states[1:]:
            joined = fold(joined, keys, state)
        builder.branch(narrow_head)

        builder.position_at_end(narrow_head)
        at_2, left_2, state_2 = builder.phi(i64), builder.phi(i64), builder.phi(vector)
        at_2.add_incoming(at, narrow)
        left_2.add_incoming(left, narrow)
        state_2.add_incoming(joined, narrow)
        builder.cbranch(builder.icmp_signed(">", left_2, ir.Constant(i64, 0)), narrow_body, done)

        builder.position_at_end(narrow_body)
        state_2.add_incoming(fold(state_2, keys, load(at_2, 0)), narrow_body)
        at_2.add_incoming(builder.add(at_2, ir.Constant(i64, 16)), narrow_body)
        left_2.add_incoming(builder.sub(left_2, ir.Constant(i64, 1)), narrow_body)
        builder.branch(narrow_head)

        builder.position_at_end(done)
        instruction = builder.store(state_2, builder.inttoptr(target, vector.as_pointer()))
        instruction.align = 1
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, types.int64, types.int64), codegen


@njit(inline="never")
def _sliced(state, address, size, tables):
    """Run plain slicing-by-8 over `size` bytes from `state`; `tables` is the address of `slicing_tables`."""
    end = address + size
    while address + 8 <= end:
        low = state ^ load_u32(address)
        high = load_u32(address + 4)
        state = (
            load_u32(tables + 7168 + ((low & 0xFF) << 2))
            ^ load_u32(tables + 6144 + ((low >> 8 & 0xFF) << 2))
            ^ load_u32(tables + 5120 + ((low >> 16 & 0xFF) << 2))
            ^ load_u32(tables + 4096 + (low >> 24 << 2))
            ^ load_u32(tables + 3072 + ((high & 0xFF) << 2))
            ^ load_u32(tables + 2048 + ((high >> 8 & 0xFF) << 2))
            ^ load_u32(tables + 1024 + ((high >> 16 & 0xFF) << 2))
            ^ load_u32(tables + (high >> 24 << 2))
        )
        address += 8
    while address < end:
        state = load_u32(tables + (((state ^ load_u8(address)) & 0xFF) << 2)) ^ (state >> 8)
        address += 1
    return state


if HAS_CLMUL:

    @njit
    def crc_update(state, address, size, tables, scratch):
        """Return the CRC state after `size` bytes. `state` is the inverted CRC; `scratch` is 16 writable bytes."""
        blocks = size >> 4
        if blocks < 4:
            return _sliced(state, address, size, tables)
        _fold(address, blocks, state, scratch)
        state = _sliced(0, scratch, 16, tables)
        return _sliced(state, address + (blocks << 4), size & 15, tables)

else:

    @njit
    def crc_update(state, address, size, tables, scratch):
        """Return the CRC state after `size` bytes. `state` is the inverted CRC; `scratch` is not used here."""
        return _sliced(state, address, size, tables)
