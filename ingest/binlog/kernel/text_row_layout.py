"""The interface between `text_rows` and Python: words of its context, and statuses."""

# Words of the context, each eight bytes.
WORDS = {
    name: 8 * number
    for number, name in enumerate(
        (
            "SOURCE",  # address of the received bytes
            "SOURCE_POS",  # number of received bytes that are already split
            "SOURCE_END",  # number of received bytes
            "SEQUENCE",  # expected number of the next packet
            "COLUMNS",  # number of values in a row
            "IS_BINARY",  # address of a byte for each column: whether its values become hex
            "VALUES",  # number of values, of all rows
            "VALUES_SIZE",  # capacity for values
            "PRESENT",  # address of a byte for each value: 0 for NULL
            "OFFSETS",  # address of the end of each value's text, four bytes; the first is 0
            "TEXT",  # address of the texts, one after the other
            "TEXT_END",  # number of bytes of text
            "TEXT_SIZE",  # capacity for text
        )
    )
}

# Statuses.
MORE = 0  # more bytes are needed
FULL = 1  # there is no room for another row
END = 2  # the packet at SOURCE_POS ends the rows
ERROR = 3  # the packet at SOURCE_POS is an error of the server
LONG = 4  # the row at SOURCE_POS takes several packets
BAD_SEQUENCE = 5
BAD_ROW = 6

LONGEST = (1 << 24) - 1
"""Length of a packet whose payload continues in the next packet."""
