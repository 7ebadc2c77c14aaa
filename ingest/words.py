"""Words of messages that several commands print."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 table`, `1,200 tables`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def subject(number: int, noun: str, one: str, many: str) -> str:
    """Return a number with its noun and the verb that fits: `1 row has`, `2 rows have`."""
    return f"{counted(number, noun)} {one if number == 1 else many}"


def sentence(text: str) -> str:
    """Return a text with the full stop of a sentence, which a text that ends with a hint has already."""
    return text if text.endswith(".") else f"{text}."


def capitalized(text: str) -> str:
    """Return a text with the capital letter of a sentence that stands alone."""
    return text[:1].upper() + text[1:]
