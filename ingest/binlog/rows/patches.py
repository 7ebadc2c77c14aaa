"""Values that the kernel leaves to Python: it writes intermediate bytes and marks them; this module makes their text.

They are rare and not suited to a kernel: changes of a JSON document, for example, have to be applied to the document.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.binlog.buffers import SIDES, Image, RowBuffers
from ingest.binlog.events.reader import MalformedEventError
from ingest.binlog.events.table_map import Column, TableMap
from ingest.binlog.kernel import layout
from ingest.binlog.kernel.layout import DATA_LIMIT
from ingest.binlog.rows.compressed_column import text_of
from ingest.binlog.rows.json_diff import Change, JsonDiffError, apply_changes, read_changes

Problem = tuple[int, int, int]
"""A row of the batch, a column and a reason of `layout`."""


@dataclass
class Patched:
    """Both images with every patch applied.

    Attributes
    ----------
    images
        String arrays of the batch's values for each of `SIDES`.
    undecoded
        By row of the batch and by column: changes of a JSON document that is not in the log. The value is NULL.
    problems
        Invalid values. Their rows cannot be decoded.
    """

    images: dict[str, pa.Array] = field(default_factory=dict)
    undecoded: dict[int, dict[int, list[Change]]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


class NoDocumentError(ValueError):
    """The log contains changes of a document but not the document."""

    def __init__(self, changes: list[Change]) -> None:
        super().__init__("the image before the change does not have the document")
        self.changes = changes


class UnfitValueError(ValueError):
    """A value cannot be decoded to text; `reason` is a reason code of `layout`."""

    def __init__(self, reason: int) -> None:
        super().__init__(reason)
        self.reason = reason


def patch_images(rows: RowBuffers, count: int, values: int, patches: int, maps: Sequence[TableMap]) -> Patched:
    """Return the texts of both images with all `patches` applied.

    Parameters
    ----------
    rows, count, values
        Buffers, and their numbers of rows and values.
    patches
        Number of marked values.
    maps
        Table maps by number.
    """
    marks = rows.patches[:patches]
    places, sides = marks >> 1, marks & 1
    row_numbers = np.searchsorted(rows.value_offsets[: count + 1], places, side="right") - 1
    columns = places - rows.value_offsets[row_numbers]
    patched = Patched()
    for number, side in enumerate(SIDES):
        image = rows.images[side]
        size = int(image.offsets[values])
        texts: dict[int, bytes | None] = {}
        for place, row, ordinal in zip(
            *(found[sides == number].tolist() for found in (places, row_numbers, columns)), strict=True
        ):
            column = maps[int(rows.maps[row])].columns[ordinal]
            try:
                text = _TEXTS[column.type](rows, number, place, row, column).encode()
                grown = size + len(text) - int(image.offsets[place + 1] - image.offsets[place])
                if grown > DATA_LIMIT:
                    raise UnfitValueError(layout.VALUE_TOO_LARGE)
                texts[place], size = text, grown
            except NoDocumentError as error:
                texts[place] = None
                patched.undecoded.setdefault(row, {})[ordinal] = error.changes
            except UnfitValueError as error:
                texts[place] = b""
                patched.problems.append((row, ordinal, error.reason))
        patched.images[side] = _with_texts(image, values, texts)
    return patched


def _with_texts(image: Image, values: int, texts: dict[int, bytes | None]) -> pa.Array:
    if not texts:
        return image.array(values)
    mask = np.zeros(values, dtype=bool)
    mask[list(texts)] = True
    # The bytes at a marked place need not be UTF-8. As binary they stay untouched until they are replaced.
    array = image.array(values).view(pa.binary())
    replacements = pa.array([text for _, text in sorted(texts.items())], pa.binary())
    return pc.replace_with_mask(array, pa.array(mask), replacements).view(pa.string())


def _document(rows: RowBuffers, side: int, place: int, row: int, column: Column) -> str:
    """Return the document of the before image with the changes of the after image applied."""
    try:
        changes = read_changes((rows.images[SIDES[side]].value(place) or b"[]").decode())
        if not rows.has(SIDES[0], row, column.ordinal):
            raise NoDocumentError(changes)
        document = rows.images[SIDES[0]].value(place)
        if document is None:
            raise JsonDiffError("NULL has no parts to change")
        return apply_changes(document.decode(), changes)
    except JsonDiffError:
        raise UnfitValueError(layout.BAD_VALUE) from None


def _inflated(rows: RowBuffers, side: int, place: int, row: int, column: Column) -> str:
    """Return the text of a compressed column's value. The kernel wrote its size, its bytes, and spare room."""
    found = rows.images[SIDES[side]].value(place) or b""
    try:
        return text_of(found[8 : 8 + int.from_bytes(found[:8], "little")], column)
    except MalformedEventError:
        raise UnfitValueError(layout.BAD_VALUE) from None


_TEXTS: Final[dict[str, Callable[[RowBuffers, int, int, int, Column], str]]] = {
    "JSON": _document,
    "VARCHAR_COMPRESSED": _inflated,
    "BLOB_COMPRESSED": _inflated,
}
