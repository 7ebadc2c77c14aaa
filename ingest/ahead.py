"""An iterator whose next items are made in a thread, while the last one is used."""

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

Item = TypeVar("Item")

_END: Final = object()


def ahead(items: Iterator[Item], most: int = 2) -> Iterator[Item]:
    """Yield items of which so many are made ahead; an error is raised at the place of its item.

    One thread makes all of them. When nobody wants further items, the last of those in work is awaited, and a generator
    is closed.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="ahead")
    made = deque(pool.submit(next, items, _END) for _ in range(most))
    try:
        while (item := made.popleft().result()) is not _END:
            made.append(pool.submit(next, items, _END))
            yield item  # type: ignore[misc]
    finally:
        pool.shutdown(cancel_futures=True)
        if isinstance(items, Generator):
            items.close()
