"""Text that anybody may have written, such as a table's name, as it can be shown without doing anything.

A terminal acts on control characters, and so may a browser, an editor or a spreadsheet. Direction marks and characters
without a width make one text look like another.
"""

import re

# What is escaped beside C0 controls and DEL: C1 controls, direction marks, line separators, characters without a width,
# tags. A class of a regular expression, for Python and for Arrow. Joiners (U+200C, U+200D) are left out: Persian and
# emoji are written with them.
UNSEEN_BEYOND_ASCII = (
    "\x80-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
# Half a surrogate pair is in no UTF-8, but Python has it for each byte of a file's name that is none.
_UNSEEN = re.compile(f"[\x00-\x1f\x7f{UNSEEN_BEYOND_ASCII}\ud800-\udfff]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

# A spreadsheet takes a cell that begins so for a formula; not one that is a number.
_FORMULA = tuple("=+-@\t\r")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def visible(text: str, keep: str = "") -> str:
    r"""Return text with each character that does not show as an escape: `\n`, `\x1b`, `\u202e`.

    Parameters
    ----------
    text
        Any text. Its own backslashes stay single: what is exact is JSON.
    keep
        Characters that are left as they are.
    """
    return _UNSEEN.sub(lambda match: match[0] if match[0] in keep else _escape(match[0]), text)


def json_visible(document: str) -> str:
    r"""Return a JSON document that means the same, with each character that does not show as `\uXXXX`.

    Parameters
    ----------
    document
        JSON in one line, without controls outside of its strings.
    """
    return _UNSEEN.sub(lambda match: _json_escape(match[0]), document)


def json_in_script(document: str) -> str:
    """Return a JSON document that means the same, as it can stand in a script of a page: `</script>` would end that."""
    return document.replace("<", "\\u003c")


def csv_cell(text: str) -> str:
    """Return text as a cell of CSV (RFC 4180) that a spreadsheet does not calculate.

    A text that would be a formula gets an apostrophe in front, as spreadsheets themselves write it. Line ends and tabs
    are kept, in quotes; other controls are written as `visible` writes them.
    """
    shown = visible(text, keep="\n\r\t")
    if shown.startswith(_FORMULA) and not _NUMBER.fullmatch(shown):
        shown = f"'{shown}"
    return '"' + shown.replace('"', '""') + '"' if any(sign in shown for sign in '",\n\r') else shown


def _escape(sign: str) -> str:
    code = ord(sign)
    if sign in _SHORT:
        return _SHORT[sign]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(sign: str) -> str:
    # Beyond the first 65,536 code points JSON has two escapes for one character.
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
