"""`binloom state`: the rows of a table at a moment."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from binloom.answers import lacks
from binloom.answers.state_files import csv_lines, marks_of, write_parquet
from binloom.answers.table_state import notes_on, state_at
from binloom.commands.open_log import report_notes, report_problems
from binloom.commands.output import StateFormat, json_text, say, write_script
from binloom.commands.whole_output import replaced
from ingest.errors import EXIT_CHECK_FAILED, EXIT_DONE
from ingest.words import subject
from recover.sources.log import Log
from recover.timeline.sorted_rows import sorted_rows
from recover.timeline.state import Row, State


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
        with replaced(output) as part:
            write_parquet(state.columns, rows, part)
    elif output is not None:
        with replaced(output) as part, part.open("w", encoding="utf-8", newline="") as file:
            file.writelines(_lines(state.columns, rows, format))
    else:
        sys.stdout.writelines(_lines(state.columns, rows, format))
        sys.stdout.flush()
    return _concluded(log, state, as_of)


def _concluded(log: Log, state: State, as_of: str | None) -> int:
    """Report on the rows that were read; return the exit code."""
    report_notes(notes_on(log, state, as_of))
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
        return (json_text({**row.values, **marks_of(row)}) + "\n" for row in rows)
    return csv_lines(columns, rows)
