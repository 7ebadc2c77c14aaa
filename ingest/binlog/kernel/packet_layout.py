"""The interface between `packets` and Python: words of its context, and statuses."""

# Words of the context, each eight bytes.
WORDS = {
    name: 8 * number
    for number, name in enumerate(
        (
            "SOURCE",  # address of the received bytes
            "SOURCE_POS",  # number of received bytes already unpacked
            "SOURCE_END",  # number of received bytes
            "EVENTS",  # address of the events, one after the other
            "EVENTS_END",  # number of event bytes
            "EVENTS_SIZE",  # capacity for event bytes
            "LEFT",  # bytes of the current packet that are still missing
            "GOES_ON",  # whether the next packet continues the same payload
            "SEQUENCE",  # expected number of the next packet
            "CHECKED",  # number of verified event bytes
            "SURE",  # number of these up to the last event that contains its own end position
            "POSITION",  # offset in the binlog file of the byte at CHECKED
            "HAS_CHECKSUMS",
            "CRC_TABLES",
            "SCRATCH",
        )
    )
}

# Statuses of both functions.
MORE = 0  # more bytes are needed
FULL = 1  # there is no room for more events
MESSAGE = 2  # a packet that holds no event begins at SOURCE_POS
BAD_SEQUENCE = 3
SPECIAL = 4  # an event that is not simply a part of the file begins at CHECKED
BAD_SIZE = 5
BAD_CHECKSUM = 6
BAD_POSITION = 7
