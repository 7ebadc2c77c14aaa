"""The methods of masking: what is landed in place of a value.

Each method is a function of the value alone. So equal values stay equal, and a before image still matches the after
image of the previous change.
"""

import hashlib
import hmac
from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa

Method = Literal["drop", "null", "hash", "partial"]
METHODS: Final[tuple[Method, ...]] = ("drop", "null", "hash", "partial")

HASH_DIGITS: Final = 32
"""Hex digits of a hash: 128 bits."""
HIDDEN: Final = "***"
"""Text in place of the hidden part of a value. It has the same length for all values."""

_KEY_CHECK: Final = b"binloom masks"


@dataclass(frozen=True, slots=True)
class Mask:
    """A method with its parameters.

    Attributes
    ----------
    tag
        Name of the mask in `masks.yml`.
    method
        `drop`: the column is absent from the row image. `null`: NULL. `hash`: HMAC-SHA256. `partial`: only the
        first and last characters.
    keep_first, keep_last
        Number of characters that `partial` keeps.
    """

    tag: str
    method: Method
    keep_first: int = 0
    keep_last: int = 0

    def fingerprint(self, key: bytes | None) -> str:
        """Return a short hash of the method, its parameters and its key: masks with equal hashes mask alike."""
        facts = [self.method, self.keep_first, self.keep_last]
        digest = hashlib.blake2b(repr(facts).encode(), digest_size=6)
        if self.method == "hash":
            digest.update(hmac.digest(key or b"", _KEY_CHECK, "sha256"))
        return digest.hexdigest()


def masked(values: pa.Array, mask: Mask, key: bytes | None) -> pa.Array:
    """Return an array of texts as a mask shows them. NULL stays NULL."""
    if mask.method in ("drop", "null"):
        return pa.nulls(len(values), pa.string())
    # A value is often repeated: in both images of a row, and in other rows.
    encoded = values.dictionary_encode()
    if mask.method == "hash":
        assert key is not None, "reading masks.yml checks that there is a key"
        texts = [_hash(text, key) for text in encoded.dictionary.to_pylist()]
    else:
        texts = [_partial(text, mask) for text in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _hash(text: str, key: bytes) -> str:
    return hmac.digest(key, text.encode("utf-8", "surrogatepass"), "sha256").hex()[:HASH_DIGITS]


def _partial(text: str, mask: Mask) -> str:
    kept = mask.keep_first + mask.keep_last
    # The kept characters would be most of a short value.
    if len(text) < 2 * kept:
        return HIDDEN
    return f"{text[: mask.keep_first]}{HIDDEN}{text[len(text) - mask.keep_last :]}"
