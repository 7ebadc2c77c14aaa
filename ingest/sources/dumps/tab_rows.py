r"""Rows of text files with tabs between the values, as MySQL Shell writes them: `\N` is NULL, and a backslash escapes.

No value has a tab or a newline of its own, because these are written as `\t` and `\n`. Source: MySQL Shell's
`text_dump_writer.cc`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

_AT_ONCE: Final = 4 << 20
_MOST_BYTES: Final = 1 << 30
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_MEANT: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


class TabRowError(Exception):
    """Some bytes are no rows. Its text is the reason."""


def tab_rows(read: Callable[[int], bytes], columns: Sequence[str]) -> "Iterator[list[pa.StringArray]]":
    """Yield rows, as one array of texts for each column.

    Parameters
    ----------
    read
        Returns at most so many further bytes, none at the end.
    columns
        Names of the columns.

    Raises
    ------
    TabRowError
        The bytes are no rows of these columns, or the last one is cut off.
    """
    rest, wanted = b"", _AT_ONCE
    while data := read(wanted):
        whole = rest + data
        end = whole.rfind(b"\n") + 1
        if end:
            yield _split(whole[:end], columns)
            wanted = _AT_ONCE
        elif len(whole) > _MOST_BYTES:
            raise TabRowError("a row has more bytes than any server sends")
        else:
            wanted = len(whole)
        rest = whole[end:]
    if rest:
        raise TabRowError("its last row is cut off")


def _split(lines: bytes, columns: Sequence[str]) -> "list[pa.StringArray]":
    import pyarrow as pa
    from pyarrow import csv

    # The names may repeat in another case, or be empty; those of Arrow's options must not.
    names = [str(number) for number in range(len(columns))]
    try:
        found = csv.read_csv(
            pa.BufferReader(lines),
            csv.ReadOptions(use_threads=False, block_size=len(lines) + 1, column_names=names),
            csv.ParseOptions(delimiter="\t", quote_char=False, escape_char=False, ignore_empty_lines=False),
            csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), null_values=["\\N"], strings_can_be_null=True
            ),
        )
    except pa.ArrowInvalid as error:
        reason = "a text is not UTF-8" if "UTF8" in str(error) else f"a row does not have {len(columns)} values"
        raise TabRowError(reason) from None
    return [_unescaped(column.combine_chunks()) for column in found.columns]


def _unescaped(values: "pa.StringArray") -> "pa.StringArray":
    import pyarrow as pa
    import pyarrow.compute as pc

    is_escaped = pc.fill_null(pc.match_substring(values, "\\"), fill_value=False)
    if not pc.any(is_escaped).as_py():
        return values
    texts = [
        _ESCAPED.sub(lambda found: _MEANT.get(found[1], found[1]), text)
        for text in values.filter(is_escaped).to_pylist()
    ]
    return pc.replace_with_mask(values, is_escaped, pa.array(texts, pa.string()))
