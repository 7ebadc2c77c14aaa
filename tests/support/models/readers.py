"""Queries of the marts beside a build: each part of an answer must be that of before or that of after the build."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recover.sources.home import kept_files
from recover.sources.home.marts import open_marts
from tests.support.depth import at_depth
from tests.support.patience import PATIENCE_SECONDS

Answers = dict[str, str]
"""A hash of the rows of each part of each table."""

_PARTS = {
    "row_changes": "concat_ws('/', event_hour, source_id, epoch, binlog_file, file_part)",
    "transactions": "concat_ws('/', source_id, epoch, binlog_file)",
    "table_versions": "''",
    "quarantined_row_events": "''",
}
# Each answer takes nearly as much processor time as a model: without a pause, the readers were a fifth of a build.
_PAUSE_SECONDS = at_depth(10, 1) / 10


def answers_of(home: Path) -> Answers:
    """Return what the marts answer now."""
    found: Answers = {}
    with open_marts(home, [("binloom", name) for name in _PARTS], is_current=True) as connection:
        for name, part in _PARTS.items():
            query = (
                f"select {part}, md5(string_agg(mart::varchar, ',' order by mart::varchar))"
                f" from binloom.{name} as mart group by all"
            )
            hashes = dict(connection.execute(query).fetchall())
            # The files may have been replaced since.
            assert dict(connection.execute(query).fetchall()) == hashes, name
            found |= {f"{name} {where}": hashed for where, hashed in hashes.items()}
    return found


@contextmanager
def readers_beside(home: Path) -> Iterator[list[Answers]]:
    """Ask again and again while a block builds; at its end, check and yield all answers."""
    before = answers_of(home)
    with answers_beside(home) as seen:
        yield seen
    assert_old_or_new(seen, before, answers_of(home))


@contextmanager
def answers_beside(home: Path) -> Iterator[list[Answers]]:
    """Ask again and again while a block builds, and yield all answers."""
    seen: list[Answers] = []
    failed: list[Exception] = []
    is_over = threading.Event()
    thread = threading.Thread(target=_ask, args=(lambda: answers_of(home), seen, failed, is_over))
    with pytest.MonkeyPatch.context() as patch:
        # A build on a busy machine may take long to write a table that it has dropped.
        patch.setattr(kept_files, "PATIENCE_SECONDS", float(PATIENCE_SECONDS))
        patch.setattr(kept_files, "_MISSING_SECONDS", 120.0)
        thread.start()
        try:
            yield seen
        finally:
            is_over.set()
            thread.join()
    assert not failed, failed


def assert_old_or_new(seen: list[Answers], before: Answers, after: Answers) -> None:
    """Check that each part of each answer is as before or as after; a part may be missing if it was or is."""
    for answers in seen:
        for part in before.keys() | after.keys() | answers.keys():
            assert answers.get(part) in (before.get(part), after.get(part)), part


def _ask(ask: Callable[[], Answers], seen: list[Answers], failed: list[Exception], is_over: threading.Event) -> None:
    try:
        while not is_over.is_set():
            seen.append(ask())
            time.sleep(_PAUSE_SECONDS)
    except Exception as error:
        failed.append(error)
