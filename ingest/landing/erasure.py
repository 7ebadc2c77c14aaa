"""Erasure: take the values of some rows out of the raw tables, and keep the rows. Needs no Spark.

Before the first file is written, a plan is stored in the home: the places of the rows, and a secret from which the
tokens of their keys are made. It contains no values. An erasure that is killed at any time is finished by the next one,
with the same tokens. At the end, one write to `segments` shows the models that these segments changed. The plan is
deleted with its secret; after that, nothing shows to which key a token belongs.
"""

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from ingest.landing.baselines import delete_unfinished
from ingest.landing.held import StreamLanding
from ingest.landing.recorder import now
from ingest.landing.row_counts import counts_of
from ingest.landing.task import GROUP_ROWS
from ingest.warehouse.files import (
    append_rows,
    data_files,
    read_errors,
    read_part,
    read_rows,
    replacing,
    segment_folder,
    store_errors,
    writer_options,
)
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.locks import SourceLock
from ingest.warehouse.names import source_stem
from ingest.warehouse.segments import SegmentState
from ingest.warehouse.spark import assert_no_reader
from ingest.warehouse.tables import BASELINE_ROWS, BASELINES, DDL_ACTIONS, ERASURES, ROW_EVENTS, STATEMENTS, RawTable
from ingest.warehouse.tokens import TOKEN

# Kinds of rows of `statements` whose text may contain values; a QUERY such as BEGIN has no targets.
_WITH_VALUES: Final = ("ROWS_QUERY", "ANNOTATE", "LOAD", "USER_VAR", "INTVAR", "RAND")

_CONTROL: Final = re.compile(r"\s*(begin|start|commit|rollback|savepoint|release|xa)\b", re.IGNORECASE)

RowKey = tuple[int, int, int]
"""Position of a row event in its file, ordinal inside a compressed payload, and ordinal of the row."""


BaselineTable = tuple[str, str, str]
"""Identifier of a baseline, and schema and name of a table in it."""


@dataclass
class FilePlan:
    """The rows to erase in one binlog file.

    Attributes
    ----------
    rows
        Row events, each with the ordinals of the key columns whose values become tokens; None for a row in quarantine,
        which keeps no value at all.
    transactions
        Positions of the transactions whose statements are erased.
    """

    epoch: int
    binlog_file: str
    rows: dict[RowKey, tuple[int, ...] | None] = field(default_factory=dict)
    transactions: set[int] = field(default_factory=set)


@dataclass
class Erasure:
    """An erasure of rows of one table.

    Attributes
    ----------
    selection_hash
        Salt and hash of the selected keys, as `hash_of_selection` makes it.
    files
        By epoch and name of the file.
    baseline_rows
        By identifier of the baseline and names of the table, which may have had another one: numbers of the rows.
    secret
        Key of the tokens.
    erased_by, erasure_reason
        The user who asked for it, and the reason that was given.
    """

    source_id: str
    schema_name: str
    table_name: str
    selection_hash: str
    files: dict[tuple[int, str], FilePlan] = field(default_factory=dict)
    baseline_rows: dict[BaselineTable, set[int]] = field(default_factory=dict)
    secret: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)
    erasure_id: str = field(default_factory=lambda: secrets.token_hex(16))
    erased_by: str | None = None
    erasure_reason: str | None = None

    @property
    def row_events(self) -> int:
        """Number of row events."""
        return sum(len(file.rows) for file in self.files.values())

    def token(self, value: str | None) -> str | None:
        """Return the token of a value: equal values have equal tokens; NULL and tokens stay as they are."""
        if value is None or TOKEN.fullmatch(value):
            return value
        return f"erased/{hmac.new(bytes.fromhex(self.secret), value.encode(), hashlib.sha256).hexdigest()[:32]}"

    def store(self, home: Path) -> None:
        """Store the plan durably."""
        known = {
            **{name: value for name, value in asdict(self).items() if name not in ("files", "baseline_rows")},
            "files": [
                [file.epoch, file.binlog_file, [[*key, ordinals] for key, ordinals in file.rows.items()], list(of)]
                for file in self.files.values()
                for of in (sorted(file.transactions),)
            ],
            "baseline_rows": [[*of, sorted(rows)] for of, rows in self.baseline_rows.items()],
        }
        with replacing(plan_path(self.source_id, home)) as path:
            path.write_text(json.dumps(known))

    @classmethod
    def stored(cls, source_id: str, home: Path) -> "Erasure | None":
        """Return the stored plan of a source, which an earlier erasure did not finish; None if there is none."""
        path = plan_path(source_id, home)
        try:
            known = json.loads(path.read_text())
        except FileNotFoundError:
            return None
        files = {
            (epoch, name): FilePlan(
                epoch,
                name,
                {(pos, payload, row): None if key is None else tuple(key) for pos, payload, row, key in rows},
                set(transactions),
            )
            for epoch, name, rows, transactions in known.pop("files")
        }
        listed = known.pop("baseline_rows")
        if isinstance(listed, dict):  # An older binloom stored it.
            listed = [[name, known["schema_name"], known["table_name"], rows] for name, rows in listed.items()]
        baselines = {(name, schema, table): set(rows) for name, schema, table, rows in listed}
        return cls(**known, files=files, baseline_rows=baselines)


def plan_path(source_id: str, home: Path) -> Path:
    """Return the path of the stored plan of a source."""
    return home / "erasures" / f"{source_stem(source_id)}.json"


def hash_of_selection(schema_name: str, table_name: str, keys: Sequence[str]) -> str:
    """Return a salt and a slow hash of keys: somebody who knows the keys can check them, but not list them quickly."""
    salt = secrets.token_bytes(16)
    text = json.dumps([schema_name, table_name, sorted(keys)]).encode()
    return f"{salt.hex()}${hashlib.pbkdf2_hmac('sha256', text, salt, 200_000).hex()}"


def erase(
    landing: StreamLanding, erasure: Erasure, progress: Callable[[int, int], None] = lambda done, total: None
) -> None:
    """Take values out of the raw tables, and record the erasure.

    Parameters
    ----------
    landing
        Landing of the source, which holds its lock.
    erasure
        The plan; it is stored already if it is that of an earlier run.
    progress
        Receives the number of files that are done, and of all.

    Raises
    ------
    StoreError
        A process may be reading the files, or they cannot be written. The next erasure of the source finishes this one.
    IngestInProgressError
        Another command lands a baseline of the source.
    """
    assert_no_reader(landing.home, "Nothing was erased.")
    with SourceLock(landing.home, landing.source_id, landing.run_id, work="baseline"):
        erasure.store(landing.home)
        # No mart has the rows of a baseline that was not completed, so no plan has them.
        known = read_rows(BASELINES, landing.home, source_id=landing.source_id)
        delete_unfinished(landing.source_id, {row["baseline_id"] for row in known}, landing.home)
        changed: list[SegmentState] = []
        statements: dict[tuple[int, str], int] = {}
        for number, (key, file) in enumerate(erasure.files.items()):
            for state in landing.record.states.get(key, []):
                if state.status == "completed":
                    statements[key] = statements.get(key, 0) + _erase_segment(state, file, erasure, landing.home)
                    changed.append(state)
            progress(number + 1, len(erasure.files))
        _erase_baselines(erasure, landing.home)
        _record(landing, erasure, statements, changed)
        path = plan_path(erasure.source_id, landing.home)
        with store_errors(path):
            path.unlink()


def _record(
    landing: StreamLanding,
    erasure: Erasure,
    statements: Mapping[tuple[int, str], int],
    changed: Iterable[SegmentState],
) -> None:
    """Record the erasure, and that the segments changed: models are built again from segments with a later time."""
    moment = now()
    facts = {
        "erasure_id": erasure.erasure_id,
        "source_id": erasure.source_id,
        "schema_name": erasure.schema_name,
        "table_name": erasure.table_name,
        "selection_hash": erasure.selection_hash,
        "recorded_at": moment,
        "erased_by": erasure.erased_by,
        "erasure_reason": erasure.erasure_reason,
    }
    rows: list[dict[str, Any]] = [
        {
            **facts,
            "epoch": epoch,
            "binlog_file": name,
            "row_events": len(file.rows),
            "erased_statements": statements.get((epoch, name), 0),
        }
        for (epoch, name), file in erasure.files.items()
    ]
    if erasure.baseline_rows:
        rows.append({**facts, "row_events": 0, "erased_statements": 0, "row_count": _baseline_rows(erasure)})
    append_rows(ERASURES, rows, f"{source_stem(erasure.source_id)}-{erasure.erasure_id}", landing.home)
    states = [replace(state, run_id=landing.run_id, recorded_at=moment) for state in changed]
    if states:
        landing.record_states(states, counts_of(states, landing.home))


def _baseline_rows(erasure: Erasure) -> int:
    return sum(len(rows) for rows in erasure.baseline_rows.values())


def _erase_segment(state: SegmentState, file: FilePlan, erasure: Erasure, home: Path) -> int:
    """Erase in the files of one segment; return the number of its statements without their text."""
    for path in data_files(segment_folder(ROW_EVENTS, state.segment, home)):
        _rewrite(ROW_EVENTS, path, lambda rows: _without_values(rows, file, erasure))
    kept = {
        position
        for path in data_files(segment_folder(DDL_ACTIONS, state.segment, home))
        for position in read_part(DDL_ACTIONS, path, ["start_pos"])["start_pos"].to_pylist()
    }
    count = 0
    for path in data_files(segment_folder(STATEMENTS, state.segment, home)):
        count += _rewrite(STATEMENTS, path, lambda rows: _without_texts(rows, file, kept, erasure))
    return count


def _rewrite(table: RawTable, path: Path, erased: Callable[[pa.Table], tuple[pa.Table, int]]) -> int:
    """Write a file again if it has rows to erase, atomically under the same name; return their number."""
    with read_errors(path), pq.ParquetFile(path) as file:
        if not any(erased(part)[1] for part in _parts(table, file)):
            return 0
        schema, count = table.file_schema, 0
        with replacing(path) as draft, pq.ParquetWriter(draft, schema, **writer_options(schema)) as writer:
            for part in _parts(table, file):
                rows, found = erased(part)
                writer.write_table(rows.cast(schema))
                count += found
    return count


def _parts(table: RawTable, file: pq.ParquetFile) -> Iterator[pa.Table]:
    """Yield the rows of a file with the current columns of its table; columns added since are NULL."""
    for batch in file.iter_batches(GROUP_ROWS):
        rows = pa.Table.from_batches([batch])
        for column in table.file_schema:
            if column.name not in rows.column_names:
                rows = rows.append_column(column, pa.nulls(rows.num_rows, column.type))
        yield rows.select(table.file_schema.names)


def _without_values(rows: pa.Table, file: FilePlan, erasure: Erasure) -> tuple[pa.Table, int]:
    keys = zip(*(rows[name].to_pylist() for name in ("start_pos", "payload_ordinal", "row_ordinal")), strict=True)
    places = [place for place, key in enumerate(keys) if key in file.rows]
    if not places:
        return rows, 0
    found = rows.take(places).to_pylist()
    for row in found:
        ordinals = file.rows[row["start_pos"], row["payload_ordinal"], row["row_ordinal"]]
        for image in ("before", "after"):
            _erase_image(row, f"{image}_values", f"{image}_columns", ordinals, erasure)
        row["undecoded_columns"] = row["json_changes"] = None
    return _with_rows(rows, places, found), len(places)


def _erase_image(
    row: dict[str, Any], values: str, columns: str, ordinals: Sequence[int] | None, erasure: Erasure
) -> None:
    """Leave only the tokens of the key in an image; the other columns are absent from it, as in a partial image."""
    image = row[values]
    if not image:
        return
    keep = [ordinal for ordinal in ordinals or () if row[columns] is None or ordinal in row[columns]]
    row[values] = [erasure.token(value) if place in keep else None for place, value in enumerate(image)]
    if ordinals is not None:
        row[columns] = keep


def _without_texts(rows: pa.Table, file: FilePlan, kept: set[int], erasure: Erasure) -> tuple[pa.Table, int]:
    """Replace the texts of statements by their tokens, except of those that change the schema."""
    facts = rows.select(["start_pos", "transaction_pos", "kind", "dml_targets", "sql_text"]).to_pylist()
    places = [
        place
        for place, row in enumerate(facts)
        if row["transaction_pos"] in file.transactions
        and row["start_pos"] not in kept
        and (row["kind"] in _WITH_VALUES or row["dml_targets"] or _may_change_rows(row))
    ]
    if not places:
        return rows, 0
    found = rows.take(places).to_pylist()
    for row in found:
        row["sql_text"] = erasure.token(row["sql_text"])
        # A tag may be a value of a row, and a name too if the statement was read in another SQL mode.
        row["digest"], row["digest_text"], row["tags"] = erasure.token(row["digest"]), None, None
    return _with_rows(rows, places, found), len(places)


def _may_change_rows(row: Mapping[str, Any]) -> bool:
    """Return whether a statement may contain values: an older binloom landed it without recording its tables."""
    return row["dml_targets"] is None and _CONTROL.match(row["sql_text"] or "") is None


def _erase_baselines(erasure: Erasure, home: Path) -> None:
    for path in data_files(raw_table_dir(BASELINE_ROWS.name, home)):
        if path.name.startswith(f"{source_stem(erasure.source_id)}."):
            _rewrite(BASELINE_ROWS, path, lambda rows: _without_baseline_rows(rows, erasure, home))


def _without_baseline_rows(rows: pa.Table, erasure: Erasure, home: Path) -> tuple[pa.Table, int]:
    # All rows of a file are those of one table of one baseline.
    of_table = tuple(rows[name][0].as_py() for name in ("baseline_id", "schema_name", "table_name") if rows.num_rows)
    wanted = erasure.baseline_rows.get(of_table, set())
    places = [place for place, number in enumerate(rows["row_number"].to_pylist()) if number in wanted]
    if not places:
        return rows, 0
    key = _key_of_baseline(of_table, home)
    found = rows.take(places).to_pylist()
    for row in found:
        row["row_values"] = [
            erasure.token(value) if place in key else None for place, value in enumerate(row["row_values"])
        ]
        row["known_columns"] = list(key)
    return _with_rows(rows, places, found), len(places)


def _key_of_baseline(of_table: BaselineTable, home: Path) -> tuple[int, ...]:
    baseline_id, schema, table = of_table
    (row,) = read_rows(BASELINES, home, baseline_id=baseline_id, schema_name=schema, table_name=table)
    return tuple(row["primary_key_ordinals"])


def _with_rows(rows: pa.Table, places: Sequence[int], found: Sequence[dict[str, Any]]) -> pa.Table:
    """Return a table with other rows at some places."""
    changed = pa.Table.from_pylist(list(found), schema=rows.schema)
    order = list(range(rows.num_rows))
    for number, place in enumerate(places):
        order[place] = rows.num_rows + number
    return pa.concat_tables([rows, changed]).combine_chunks().take(order)
