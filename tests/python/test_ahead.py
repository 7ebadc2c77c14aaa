"""Items that are made in a thread while others are used."""

from collections.abc import Iterator

import pytest

from ingest.ahead import ahead


def test_items_come_in_order_and_no_more_are_made_than_asked() -> None:
    made: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(20):
            made.append(number)
            yield number

    seen = []
    for number in ahead(numbers(), 3):
        seen.append(number)
        assert len(made) <= number + 4
    assert seen == made == [*range(20)]


def test_an_error_comes_behind_the_items_before_it() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("second")

    items = ahead(broken())
    assert next(items) == 1
    with pytest.raises(ValueError, match="second"):
        next(items)


def test_a_generator_is_closed_when_nobody_wants_its_rest() -> None:
    ended = []

    def endless() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            ended.append(True)

    for _ in ahead(endless()):
        break
    assert ended == [True]
