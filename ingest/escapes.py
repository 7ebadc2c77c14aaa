"""Escapes for untrusted text, such as a table's name, so that showing it has no side effects.

A terminal acts on control characters, and so may a browser, an editor or a spreadsheet. Direction marks and zero-width
characters make one text look like another.
"""

import re

# Characters to escape besides C0 controls and DEL: C1 controls, direction marks, line separators, zero-width
# characters, tags. This is a character class of a regular expression, for Python and for Arrow. Joiners (U+200C,
# U+200D) are not in it: Persian and emoji need them.
UNSEEN_BEYOND_ASCII = (
    "\x80-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
# UTF-8 has no half surrogate pairs, but Python uses one for each byte of a file name that is not UTF-8.
_UNSEEN = re.compile(f"[\x00-\x1f\x7f{UNSEEN_BEYOND_ASCII}\ud800-\udfff]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

# A spreadsheet treats a cell that begins with one of these as a formula, unless the cell is a number.
_FORMULA = tuple("=+-@\t\r")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def visible(text: str, keep: str = "") -> str:
    r"""Return text with each invisible character replaced by an escape: `\n`, `\x1b`, `\u202e`.

    Parameters
    ----------
    text
        Any text. Its own backslashes are not doubled; use JSON when the result must be exact.
    keep
        Characters that are not escaped.
    """
    return _UNSEEN.sub(lambda match: match[0] if match[0] in keep else _escape(match[0]), text)


def json_visible(document: str) -> str:
    r"""Return an equivalent JSON document with each invisible character written as `\uXXXX`.

    Parameters
    ----------
    document
        JSON on one line, without control characters outside its strings.
    """
    return _UNSEEN.sub(lambda match: _json_escape(match[0]), document)


def json_in_script(document: str) -> str:
    """Return an equivalent JSON document that is safe in a page's script: `</script>` in a string would end it."""
    return document.replace("<", "\\u003c")


def csv_cell(text: str) -> str:
    """Return text as a CSV cell (RFC 4180) that a spreadsheet does not evaluate.

    A text that would be a formula gets a leading apostrophe, as spreadsheets themselves write it. Tabs are kept, and
    line ends too, in quotes. Other controls are written as `visible` writes them. An empty text is `""`: a cell without
    anything is NULL.
    """
    shown = visible(text, keep="\n\r\t")
    if shown.startswith(_FORMULA) and not _NUMBER.fullmatch(shown):
        shown = f"'{shown}"
    return '"' + shown.replace('"', '""') + '"' if not shown or any(sign in shown for sign in '",\n\r') else shown


def _escape(sign: str) -> str:
    code = ord(sign)
    if sign in _SHORT:
        return _SHORT[sign]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(sign: str) -> str:
    # JSON writes a character beyond the first 65,536 code points as two escapes.
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
