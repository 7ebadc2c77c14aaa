"""An iterator whose next items are made in a thread, while the last one is used."""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

Item = TypeVar("Item")

_END: Final = object()


def _wait() -> None:
    pass


def ahead(items: Iterator[Item], most: int = 2, stop: Callable[[], None] = _wait) -> Iterator[Item]:
    """Yield items of which so many are made ahead; an error is raised at the place of its item.

    One thread makes all of them. When nobody wants more, the item in work is awaited, and a generator is closed.

    Parameters
    ----------
    items
        The items.
    most
        Number of items that are made ahead.
    stop
        Shortens the wait for the item in work.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="ahead")
    made = deque(pool.submit(next, items, _END) for _ in range(most))
    is_whole = False
    try:
        while (item := made.popleft().result()) is not _END:
            made.append(pool.submit(next, items, _END))
            yield item  # type: ignore[misc]
        is_whole = True
    finally:
        if not is_whole:
            stop()
        pool.shutdown(cancel_futures=True)
        if isinstance(items, Generator):
            items.close()
