"""The case of letters in names, which servers do not tell apart in the names of columns."""

from unicodedata import ucd_3_2_0


def lowered(name: str) -> str:
    """Return a name in lower case as servers have it: letter by letter, so that `ß` is not `ss`."""
    return name.lower() if name.isascii() else "".join(map(_lowered, name))


def _lowered(letter: str) -> str:
    # The tables of the servers are older than some pairs of letters, such as ẞ and ß.
    is_old = ucd_3_2_0.category(letter) != "Cn"
    # Python lowers İ to two characters.
    return letter.lower()[0] if is_old else letter
