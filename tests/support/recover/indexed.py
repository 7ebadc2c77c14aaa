"""Index files in small segments, and compare answers with and without the index."""

import random
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from ingest.errors import BinloomError
from ingest.sources.files.sidecars import sidecar_of, write_sidecar
from ingest.sources.snapshots.snapshot import SchemaSnapshot
from recover.index.indexing import index_of
from recover.index.opened import Index
from recover.selection.filters import Filters
from recover.sources.log import Log

SMALL = 600
"""Bytes of a segment: most transactions have one of their own."""


def indexed(files: Sequence[Path], folder: Path, segment_bytes: int = SMALL) -> Index:
    """Index files into a folder."""
    for file in files:
        place = sidecar_of(file, folder)
        assert isinstance(place, Path)
        write_sidecar(file, place, index_of(file, segment_bytes))
    return Index(folder)


def answer(
    files: Sequence[Path], filters: Filters, snapshot: SchemaSnapshot | None = None, index: Index | None = None
) -> tuple[Any, Log | None]:
    """Return everything that a question tells, but how much was read; and the log."""
    try:
        log = Log.of_files(files, filters, snapshot=snapshot, index=index)
    except BinloomError as error:
        return str(error), None
    told: list[Any] = [list(map(str, log.quarantined(filters))), list(map(str, log.problems))]
    try:
        selection = log.select(filters)
        rows = sorted(map(repr, log.connection.execute(selection.sql()).fetchall()))
        told += [selection.notes, rows]
        if not rows:
            reason = log.why_nothing(selection)
            told += [type(reason).__name__, str(reason)]
    except BinloomError as error:
        told += [type(error).__name__, str(error)]
    return told, log


def questions(whole: Log, chance: random.Random, rounds: int) -> Iterator[Filters]:
    """Yield questions on the log of whole files: on its tables, keys, times, transactions and positions."""
    query = "select schema_name || '.' || table_name, pk_values, pk_values_after, event_timestamp, gtid, binlog_file,"
    changes = whole.connection.execute(f"{query} transaction_pos, start_pos from binloom.row_changes").fetchall()
    tables = sorted(f"{schema}.{table}" for schema, table in whole.tables)
    yield Filters()
    yield Filters.of(tables=["no_such_table"])
    for _ in range(rounds):
        if not changes:
            yield Filters.of(tables=[chance.choice(tables)]) if tables else Filters()
            continue
        table, old, new, moment, gtid, file, transaction, position = chance.choice(changes)
        keys = [key for key in (old, new) if key is not None] or ["1"]
        later = moment + timedelta(seconds=chance.choice([1, 5, 100_000]))
        yield Filters.of(tables=[table])
        yield Filters.of(tables=[table], keys=keys)
        yield Filters.of(tables=["*"], keys=keys[:1])
        yield Filters.of(tables=[table], keys=[str(chance.randint(-5, 500)), keys[-1]])
        yield Filters(tables=(chance.choice(tables),), since=moment, until=later)
        yield Filters(since=later)
        yield Filters.of(transactions=[f"{file}:{transaction + chance.choice([0, 0, 1])}"])
        yield Filters.of(files=[file], from_pos=position, to_pos=position + chance.choice([1, 2000]))
        yield Filters.of(threads=[chance.randint(1, 50)], tables=[table])
        if gtid is not None:
            yield Filters.of(gtids=[gtid])
            yield Filters.of(gtids=[f"{gtid}99999"])


def questions_through_time(
    tables: Sequence[tuple[str, str, str | None]], chance: random.Random, rounds: int
) -> Iterator[tuple[str, ...]]:
    """Yield commands on tables, each with one of its keys and a GTID."""
    yield "state", "no_such_table"
    for number in range(rounds):
        table, key, gtid = chance.choice(tables)
        moment = chance.choice([gtid or "binlog.000001:2000", "2026-11-17 09:30", "binlog.000001:4"])
        as_of = ("--as-of", moment) if number % 3 else ()
        yield ("history", table, key, *as_of) if number % 2 else ("state", table, *as_of)


def undos(whole: Log, chance: random.Random, rounds: int) -> Iterator[tuple[str, ...]]:
    """Yield commands that take changes of a log back, with filters of every kind."""
    query = "select schema_name || '.' || table_name, pk_values, event_timestamp, gtid, binlog_file, transaction_pos"
    changes = whole.connection.execute(f"{query} from binloom.row_changes").fetchall()
    yield "undo", "--table", "no_such_table"
    for number in range(rounds if changes else 0):
        of_table = chance.choice(sorted({one[0] for one in changes}))
        table, key, moment, gtid, file, position = chance.choice([one for one in changes if one[0] == of_table])
        filters = chance.choice(
            [
                ("--transaction", gtid or f"{file}:{position}"),
                ("--gtid", gtid) if gtid is not None else ("--file", file, "--from-pos", str(position)),
                ("--table", table, "--key", key or "1"),
                ("--table", table, "--since", f"{moment:%F %T}"),
                ("--table", chance.choice(changes)[0]),
            ]
        )
        options = [(), ("--skip-conflicts",), ("--with-cascades",), ("--with-dependents",), ("--rows-only",)]
        yield ("redo" if number % 5 == 4 else "undo", *filters, *options[number % len(options)])
