"""Two images have the same digest exactly when they have the same values, in every recording.

The proof of the chain reads values only where digests differ, so an equal digest of other values would hide a change.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from ingest.binlog import open_binlog
from ingest.errors import BinlogError
from tests.support.models.macros import Macros
from tests.support.places import FIXTURES, SAMPLES

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Image = tuple[list[str | None], list[int] | None]

# Images that are easily taken for each other.
SIMILAR: list[Image] = [
    ([None, "a"], None),
    (["a", None], None),
    ([None, "a"], [1]),
    (["a", None], [0]),
    (["", "a"], None),
    (["a", ""], None),
    (["ab", "c"], None),
    (["a", "bc"], None),
    ([None, None], None),
    ([None, None], [0]),
    ([None, None], [1]),
    ([None, None], []),
    ([None], None),
    ([None], []),
    (["0", "-0"], None),
    (["-0", "0"], None),
    (["1", "1.0"], None),
    (["null", None], None),
    ([None, "null"], None),
    (["a", "a "], None),
    (["a", "a"], None),
    (["a", "a", None], None),
    (["42", None], None),
]


def recorded_images() -> Iterator[Image]:
    """Yield the images of all recordings."""
    for path in sorted([*FIXTURES.glob("*.binlog"), *SAMPLES.glob("*/*.00000?")]):
        try:
            for batch in open_binlog(path).row_batches():
                for row in batch.to_pylist():
                    for side, absent_in in (("before", "INSERT"), ("after", "DELETE")):
                        if row["event_type"] != absent_in:
                            yield row[f"{side}_values"], row[f"{side}_columns"]
        except BinlogError:
            # Recordings of damaged and unfinished logs are read up to there.
            continue


def known(image: Image) -> tuple[tuple[str] | tuple[str | None] | None, ...]:
    """Return the values of an image as tuples; None for a column that it lacks."""
    values, present = image
    return tuple((value,) if present is None or place in present else None for place, value in enumerate(values))


def digests(spark: Any, images: list[Image]) -> list[int]:
    expression = Macros({}).value("image_digest", "image.values", "image.columns")
    schema = "number int, image struct<values: array<string>, columns: array<int>>"
    table = spark.createDataFrame([(number, image) for number, image in enumerate(images)], schema)
    return [row[0] for row in table.orderBy("number").selectExpr(expression).collect()]


def assert_digests_tell_apart(spark: Any, images: list[Image]) -> None:
    found: dict[Any, int] = {}
    for image, digest in zip(images, digests(spark, images), strict=True):
        assert found.setdefault(known(image), digest) == digest, image
    assert len(set(found.values())) == len(found)


def test_similar_images_have_other_digests(spark: Any) -> None:
    assert len({known(image) for image in SIMILAR}) == len(SIMILAR)
    assert_digests_tell_apart(spark, SIMILAR)


def test_images_of_recordings_have_the_same_digest_if_they_have_the_same_values(spark: Any) -> None:
    images = list(recorded_images())
    assert len({known(image) for image in images}) > 500
    assert len({known(image) for image in images}) < len(images)
    assert_digests_tell_apart(spark, images)


def test_an_image_with_all_columns_listed_is_a_whole_one(spark: Any) -> None:
    one, other = digests(spark, [(["1", None, "x"], None), (["1", None, "x"], [0, 1, 2])])
    assert one == other
