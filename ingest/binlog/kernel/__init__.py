"""The compiled decoder, and the layout of the memory that it works on.

Modules whose functions numba compiles are imported only to compile them. Python calls the entry points here; the first
call of each loads its code.
"""

from typing import Final

from ingest.binlog.kernel.compiled import load

ENTRY_POINTS: Final = (
    ("dump_rows", "split", 1),
    ("packets", "unpack", 1),
    ("packets", "verify", 1),
    ("strings", "convert_string", 5),
    ("text_rows", "split", 1),
    ("text_rows", "write_singles", 5),
    ("walk", "run", 1),
)
"""Module, name and number of arguments of each."""


def run(context: int) -> int:
    """Walk events from POS on until one of the statuses of `layout`; `context` is the context's address."""
    return load("walk", "run", 1)(context)


def unpack(context: int) -> int:
    """Unpack packets of a stream until one of the statuses of `packet_layout`."""
    return load("packets", "unpack", 1)(context)


def verify(context: int) -> int:
    """Verify events of a stream until one of the statuses of `packet_layout`."""
    return load("packets", "verify", 1)(context)


def split_rows(context: int) -> int:
    """Split rows of a query until one of the statuses of `text_row_layout`."""
    return load("text_rows", "split", 1)(context)


def split_dump(context: int) -> int:
    """Split rows of INSERT statements until one of the statuses of `dump_row_layout`."""
    return load("dump_rows", "split", 1)(context)


def write_singles(bits: int, count: int, text: int, offsets: int, powers: int) -> int:
    """Write FLOAT numbers as texts of at most 24 bytes, with the end of each; return the bytes of text, or -1."""
    return load("text_rows", "write_singles", 5)(bits, count, text, offsets, powers)


def convert_string(out: int, address: int, size: int, charset: int, table: int) -> int:
    """Write bytes of a character set as UTF-8; return the address behind the text, or a negative number."""
    return load("strings", "convert_string", 5)(out, address, size, charset, table)


def prepare() -> None:
    """Load all entry points now, and compile those that no earlier process has compiled."""
    for entry_point in ENTRY_POINTS:
        load(*entry_point)
