"""`binloom state`: the rows of a table at a moment."""

import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from binloom.answers import lacks
from binloom.answers.table_state import UNCERTAIN, UNKNOWN, marks, masked, notes_on, state_at
from binloom.commands.open_log import report_notes, report_problems
from binloom.commands.output import StateFormat, json_text, say, write_script
from ingest.errors import EXIT_CHECK_FAILED, EXIT_DONE
from ingest.escapes import csv_cell
from ingest.words import subject
from recover.sources.log import Log
from recover.timeline.sorted_rows import sorted_rows
from recover.timeline.state import Row, State

_ROWS_AT_ONCE: Final = 10_000


def print_state(
    log: Log, table_name: str, source_id: str | None, as_of: str | None, format: StateFormat, output: Path | None
) -> int:
    """Print the rows of a table, or write them to a file; then report on stderr whether they are all rows.

    `log` has the marts of `table_log`.
    """
    state = state_at(log, table_name, as_of, source_id)
    report_notes(lacks.beginning(log, (state.table.source_id,)))
    if format is StateFormat.SQL:
        return max(_write_inserts(log, state, output), _concluded(log, state, as_of))
    rows = sorted_rows(log.connection, state, log.versions)
    if format is StateFormat.PARQUET and output is not None:
        _write_parquet(state.columns, rows, output)
    elif output is not None:
        with output.open("w", encoding="utf-8", newline="") as file:
            file.writelines(_lines(state.columns, rows, format))
    else:
        sys.stdout.writelines(_lines(state.columns, rows, format))
        sys.stdout.flush()
    return _concluded(log, state, as_of)


def _concluded(log: Log, state: State, as_of: str | None) -> int:
    """Report on the rows that were read; return the exit code."""
    report_notes((*notes_on(state), *masked(log, state), *(lacks.end(log) if as_of is None else ())))
    return report_problems(log)


def _write_inserts(log: Log, state: State, output: Path | None) -> int:
    """Print the rows as INSERT statements; return the exit code, which tells whether all rows have one."""
    from recover.undo.print.inserts import inserts_of

    inserts = inserts_of(log, state)
    write_script(inserts.lines(), output)
    if inserts.left_out:
        say(f"{subject(inserts.left_out, 'row', 'is', 'are')} left out; the script has the reason beside each.")
    return EXIT_CHECK_FAILED if inserts.left_out else EXIT_DONE


def _lines(columns: Sequence[str], rows: Iterator[Row], format: StateFormat) -> Iterator[str]:
    if format is StateFormat.JSON:
        for row in rows:
            yield json_text({**row.values, **_marks(row)}) + "\n"
        return
    yield ",".join(csv_cell(name) for name in (*columns, UNKNOWN, UNCERTAIN)) + "\n"
    for row in rows:
        cells = [_csv_value(row.values.get(name)) for name in columns]
        marks = [_csv_value("; ".join(_marks(row).get(name, ())) or None) for name in (UNKNOWN, UNCERTAIN)]
        yield ",".join((*cells, *marks)) + "\n"


def _csv_value(value: str | None) -> str:
    return "" if value is None else csv_cell(value)


def _marks(row: Row) -> dict[str, list[str]]:
    """Return what is not known about a row; nothing if it is certain."""
    found = zip((UNKNOWN, UNCERTAIN), marks(row), strict=True)
    return {name: reasons for name, reasons in found if reasons}


def _write_parquet(columns: Sequence[str], rows: Iterator[Row], output: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    lists = {name: pa.list_(pa.string()) for name in (UNKNOWN, UNCERTAIN)}
    schema = pa.schema({**dict.fromkeys(columns, pa.string()), **lists})
    with pq.ParquetWriter(output, schema, compression="zstd") as writer:
        while part := list(itertools.islice(rows, _ROWS_AT_ONCE)):
            values = {name: [row.values.get(name) for row in part] for name in columns}
            marks = {name: [_marks(row).get(name) for row in part] for name in lists}
            writer.write_table(pa.table({**values, **marks}, schema=schema))
