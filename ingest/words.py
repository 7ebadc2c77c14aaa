"""Words of messages that several commands print."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 table`, `1,200 tables`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
