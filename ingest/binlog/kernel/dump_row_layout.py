"""The interface between `dump_rows` and Python: words of its context, kinds of columns, and statuses."""

# Words of the context, each eight bytes.
WORDS = {
    name: 8 * number
    for number, name in enumerate(
        (
            "SOURCE",  # address of the bytes of the dump
            "SOURCE_POS",  # number of bytes that are already split
            "SOURCE_END",  # number of bytes
            "HEAD",  # address of the text of an INSERT statement before its first row
            "HEAD_SIZE",  # number of bytes of it; 0: no further statement is split
            "COLUMNS",  # number of values in a row
            "KINDS",  # address of a byte for each column
            "VALUES",  # number of values, of all rows
            "PRESENT",  # address of a byte for each value: 0 for NULL
            "OFFSETS",  # address of the end of each value's text, four bytes; the first is 0
            "TEXT",  # address of the texts, one after the other
            "TEXT_END",  # number of bytes of text
        )
    )
}

# Kinds of columns.
TEXT = 0  # a string
NUMBER = 1  # a number, in quotes or not
BINARY = 2  # a string of bytes, or hex: it becomes `0x` and hex
BITS = 3  # as BINARY, or b'0101', which stays as it is

# Statuses.
MORE = 0  # the source ends inside a row, which begins at SOURCE_POS
END = 1  # a statement ends before SOURCE_POS
BAD = 2  # the row at SOURCE_POS is not in a known form

TEXT_EXCESS = 2
"""A byte of a dump becomes at most so many bytes of text, and so does `''`, which becomes `0x`."""
LEAST_VALUE = 2
"""A value takes at least so many bytes of a dump, with the sign behind it."""
