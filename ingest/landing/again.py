"""Land segments again whose values were decoded with hints that differ from the known schema history.

A run finds such segments itself for the files that it is given. dbt lists the others in model
`segments_to_land_again`, which is read from the warehouse without Spark.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ingest.errors import UsageError
from ingest.landing.options import filter_words
from ingest.warehouse.files import BUILD_ANEW, data_files, read_errors
from ingest.warehouse.home import model_dirs
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.segments import COMPACTED_START, FIRST_EVENT, Segment, SegmentState

Row = dict[str, Any]


def listed_segments(record: SourceRecord, names: Sequence[str], filter_text: str | None, home: Path) -> list[Segment]:
    """Return the completed segments of the named files that must be landed again.

    Parameters
    ----------
    record
        Record of the source.
    names
        Names of the given files.
    filter_text
        Filter of the new landing, as text in the format of `segments`.

    Raises
    ------
    UsageError
        The model is not built, or a segment was landed with another filter.
    """
    listed = {
        (row["source_id"], row["epoch"], row["binlog_file"], row["segment_start"])
        for row in _mart_rows("segments_to_land_again", home)
        if row["source_id"] == record.source_id and row["binlog_file"] in names
    }
    found = []
    for key, states in sorted(record.states.items()):
        name = key[1]
        for state in states:
            if state.status != "completed" or state.key not in listed:
                continue
            if key in record.erased:
                raise UsageError(
                    f"Rows of {name} were erased, and landing it again would bring their values back.",
                    hint="Land the other files again: name them with --files.",
                )
            if state.table_filter != filter_text:
                raise UsageError(
                    f"{name} was landed with {filter_words(state.table_filter)}, and would be landed again with "
                    f"{filter_words(filter_text)}.",
                    hint="Give the options that it was landed with.",
                )
            found.append(state.segment)
    return found


def reopened(
    segments: Sequence[Segment], run_id: str, recorded_at: datetime, filter_text: str | None
) -> list[SegmentState]:
    """Return the states that open completed segments again.

    A compacted segment is replaced by an open segment that begins at the first event.
    """
    states = []
    for segment in segments:
        if segment.start == COMPACTED_START:
            states.append(segment.state("replaced", run_id, recorded_at, table_filter=filter_text))
            segment = replace(segment, start=FIRST_EVENT)
        states.append(segment.state("in_progress", run_id, recorded_at, table_filter=filter_text))
    return states


def _mart_rows(model: str, home: Path) -> Iterator[Row]:
    """Yield the rows of a table that dbt built, from all schemas."""
    folders = model_dirs(model, home)
    if not folders:
        raise UsageError(
            f"Model {model} is not built: it lists the segments that must be landed again.",
            hint="Run `dbt build`, then this command again.",
        )
    for folder in folders:
        for path in data_files(folder):
            with read_errors(path, BUILD_ANEW):
                rows = pq.ParquetFile(path).read().to_pylist()
            yield from rows
