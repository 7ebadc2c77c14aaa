"""Columns `digest`, `digest_text` and `tags` of `statements`."""

import hmac
from collections.abc import Iterable
from itertools import repeat
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from ingest.ddl.batches import sql_mode_bits
from ingest.ddl.digests.comment_tags import comment_tags
from ingest.ddl.digests.digest import Digest, DigestReader

DIGEST_COLUMNS: Final = [
    pa.field("digest", pa.string()),
    pa.field("digest_text", pa.string()),
    pa.field("tags", pa.map_(pa.string(), pa.string())),
]
DIGEST_TYPE: Final = pa.struct(DIGEST_COLUMNS)

# The others are values of variables, or statements that have not succeeded.
_KINDS: Final = pa.array(["QUERY", "ROWS_QUERY", "ANNOTATE", "LOAD"])
# The server itself writes them around most transactions; nobody asks for them.
_NOT_READ: Final = pa.array(["BEGIN", "COMMIT", "ROLLBACK", None])
# Their values are not values of rows. An application may write a value of a row into any other tag.
_TAGS_WITHOUT_VALUES: Final = frozenset(
    {"application", "app", "service", "controller", "action", "route", "framework", "db_driver", "traceparent"}
)


class DigestColumns:
    """Computes the columns. The texts of most statements differ only in values from one that was read before.

    Parameters
    ----------
    is_masked
        Whether columns of the source are masked. The digest then has no text, and only tags of known keys are kept: a
        name or another tag may be a value of a row.
    key
        Key of the masks, which the hash of the digest then needs; None if there is none.
    """

    def __init__(self, is_masked: bool = False, key: bytes | None = None) -> None:
        self._is_masked = is_masked
        self._key = key
        self._reader = DigestReader()

    def of(self, statements: pa.RecordBatch | pa.Table) -> list[pa.Array]:
        """Return the columns for statements: `kind`, `sql_text`, `sql_mode`.

        ROWS_QUERY and ANNOTATE events do not contain the SQL mode: they are read in the default mode.
        """
        texts = statements["sql_text"]
        is_read = pc.and_not(pc.is_in(statements["kind"], _KINDS), pc.is_in(texts, _NOT_READ))
        read = statements.filter(is_read)
        rows: list[_Row] = []
        known: dict[tuple[str, str], int] = {}
        places: list[int] = []
        for text, mode in zip(read["sql_text"].to_pylist(), _modes(read["sql_mode"], self._is_masked), strict=True):
            digest, comments = self._reader.read(text, mode)
            key = digest.hash, "\0".join(comments)
            place = known.get(key)
            if place is None:
                place = known[key] = len(rows)
                rows.append(self._row(digest, comment_tags(comments)))
            places.append(place)
        taken = pc.replace_with_mask(pa.nulls(len(texts), pa.int32()), is_read, pa.array(places, pa.int32()))
        return [
            pa.array([row[number] for row in rows], field.type).take(taken)
            for number, field in enumerate(DIGEST_COLUMNS)
        ]

    def _row(self, digest: Digest, tags: dict[str, str]) -> "_Row":
        if not self._is_masked:
            return digest.hash, digest.text, list(tags.items()) or None
        known = [(name, value) for name, value in tags.items() if name in _TAGS_WITHOUT_VALUES]
        return digest_hash(digest, self._key), None, known or None


def _modes(names: pa.Array, is_masked: bool) -> Iterable[int]:
    """Return the bits of SQL modes; with masks those of the default mode, which tells fewer names from values."""
    if is_masked or names.null_count == len(names):
        return repeat(0, len(names))
    return [sql_mode_bits(mode) if mode else 0 for mode in names.to_pylist()]


_Row = tuple[str, str | None, list[tuple[str, str]] | None]


def digest_hash(digest: Digest, key: bytes | None) -> str:
    """Return the hash of a digest; with a key, only those who have it can compute it."""
    return hmac.new(key, digest.text.encode("utf-8", "surrogatepass"), "sha256").hexdigest() if key else digest.hash
