"""Values that the kernel leaves for Python: it writes what it found and marks them, and this makes the text of them.

They are rare, and what they need is no work for a kernel: changes of a JSON document have to be applied to it.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.binlog.buffers import SIDES, Image, RowBuffers
from ingest.binlog.compressed_column import text_of
from ingest.binlog.json_diff import JsonDiffError, apply_diffs
from ingest.binlog.kernel import layout
from ingest.binlog.reader import MalformedEventError
from ingest.binlog.table_map import Column, TableMap

Problem = tuple[int, int, int]
"""A row of the batch, a column and a reason of `layout`."""


class UnfitValueError(ValueError):
    """No text can be made of a value; `reason` is one of `layout`."""

    def __init__(self, reason: int) -> None:
        super().__init__(reason)
        self.reason = reason


def patch_images(
    rows: RowBuffers, count: int, values: int, patches: int, maps: Sequence[TableMap]
) -> tuple[dict[str, pa.Array], list[Problem]]:
    """The texts of both images with all `patches` applied, and the rows in which that failed.

    Parameters
    ----------
    rows, count, values
        Buffers with so many rows and values.
    patches
        How many values are marked.
    maps
        Table maps by number.

    Returns
    -------
    images, problems
        String arrays of `values` elements for each of `SIDES`.
    """
    marks = rows.patches[:patches]
    places, sides = marks >> 1, marks & 1
    row_numbers = np.searchsorted(rows.value_offsets[: count + 1], places, side="right") - 1
    columns = places - rows.value_offsets[row_numbers]
    problems: list[Problem] = []
    images = {}
    for number, side in enumerate(SIDES):
        texts: dict[int, str] = {}
        for place, row, ordinal in zip(
            *(found[sides == number].tolist() for found in (places, row_numbers, columns)), strict=True
        ):
            column = maps[int(rows.maps[row])].columns[ordinal]
            try:
                texts[place] = _TEXTS[column.type](rows, number, place, column)
            except UnfitValueError as error:
                texts[place] = ""
                problems.append((row, ordinal, error.reason))
        images[side] = _with_texts(rows.images[side], values, texts)
    return images, problems


def _with_texts(image: Image, values: int, texts: dict[int, str]) -> pa.Array:
    if not texts:
        return image.array(values)
    mask = np.zeros(values, dtype=bool)
    mask[list(texts)] = True
    # What stands at a marked place need not be UTF-8: as bytes it is let alone until it is replaced.
    array = image.array(values).view(pa.binary())
    replacements = pa.array([texts[place].encode() for place in sorted(texts)], pa.binary())
    return pc.replace_with_mask(array, pa.array(mask), replacements).view(pa.string())


def _document(rows: RowBuffers, side: int, place: int, column: Column) -> str:
    """The document of the before image with the changes that stand in the after image."""
    document = rows.images[SIDES[0]].value(place)
    if document is None:
        raise UnfitValueError(layout.NO_DOCUMENT)
    try:
        return apply_diffs(document.decode(), (rows.images[SIDES[side]].value(place) or b"[]").decode())
    except JsonDiffError:
        raise UnfitValueError(layout.BAD_VALUE) from None


def _inflated(rows: RowBuffers, side: int, place: int, column: Column) -> str:
    """A value of a compressed column: its size, its bytes, and room to spare."""
    found = rows.images[SIDES[side]].value(place) or b""
    try:
        return text_of(found[8 : 8 + int.from_bytes(found[:8], "little")], column)
    except MalformedEventError:
        raise UnfitValueError(layout.BAD_VALUE) from None


_TEXTS: Final[dict[str, Callable[[RowBuffers, int, int, Column], str]]] = {
    "JSON": _document,
    "VARCHAR_COMPRESSED": _inflated,
    "BLOB_COMPRESSED": _inflated,
}
