"""`binloom restore`: tables at a moment, from a dump and the log after it."""

import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from binloom.answers.lacks import end
from binloom.answers.named_files import binlogs
from binloom.commands.open_log import report_notes, report_problems
from binloom.commands.output import RestoreFormat, progress, say, write_script
from binloom.commands.whole_output import replaced
from ingest.errors import EXIT_DONE, UsageError
from ingest.sources.files.piped import STANDARD_INPUT
from recover.restore.cascades import cascading_parents
from recover.restore.choice import (
    chosen,
    dumped_table,
    is_pattern,
    missing_parents,
    parents_first,
    unknown_name,
    with_parents,
)
from recover.restore.dumped_log import DumpedLog, log_after
from recover.restore.refusal import RestoreRefusedError
from recover.restore.rows import RestoredTable, described, restored_table
from recover.restore.writing import sql_lines, write_csv, write_parquet
from recover.sources.files.file_log import SOURCE
from recover.timeline.as_of import Moment, moment_of
from recover.undo.tables.table import TableName, foreign_keys_of_snapshot

if TYPE_CHECKING:
    from ingest.sources.baselines.baseline_tables import BaselineTable
    from ingest.sources.dumps.dump import Dump
    from ingest.sources.servers.address import ServerAddress


@dataclass(frozen=True)
class Wanted:
    """The tables that a person wants, and how.

    Attributes
    ----------
    tables
        Names and patterns.
    as_of
        The moment; None: the end of the log.
    schema
        Schema of tables that the dump names without one.
    position
        `FILE:POSITION` of the dump; None: it names its position.
    with_parents
        Whether the tables that foreign keys refer to are restored, too.
    is_rounded, is_locked
        What a person says of the dump; see the options.
    live
        The server that the rows are compared with; None to write all rows.
    """

    tables: Sequence[str]
    as_of: str | None
    schema: str | None = None
    position: tuple[str, int] | None = None
    with_parents: bool = False
    is_rounded: bool = False
    is_locked: bool = False
    live: "ServerAddress | None" = None


def restore(
    named: Path | str, files: Sequence[Path], wanted: Wanted, format: RestoreFormat, output: Path | None
) -> int:
    """Write tables as they were at a moment; the output exists only when it has all rows of all tables."""
    from ingest.sources.dumps.named_dump import open_dump

    if str(named) == STANDARD_INPUT and Path(STANDARD_INPUT) in files:
        raise UsageError(
            "- is the dump and a binlog file, but standard input can be read only once.", hint="Name files."
        )
    if wanted.live is not None and format is not RestoreFormat.SQL:
        raise UsageError("--compare-with writes SQL.", hint=f"Leave --format {format.value} out.")
    with progress("reading the dump"):
        dump = open_dump(named, wanted.schema, position=wanted.position, with_rounded=wanted.is_rounded)
    if not dump.is_whole:
        raise RestoreRefusedError(
            f"{dump.place} may be cut off: it ends with neither `-- Dump completed` nor the last statements of"
            " mysqldump.",
            hint="Write the dump without --compact.",
        )
    with tempfile.TemporaryDirectory(prefix="binloom-restore-") as folder:
        spill = Path(folder)
        names, source = _opened(dump, files, wanted, spill)
        moment = _moment(source, wanted.as_of)
        tables = _tables(source, names, moment, wanted, needs_documents=format is RestoreFormat.SQL)
        if wanted.live is not None:
            _write_comparison(tables, dump.place, wanted.live, output)
        elif format is RestoreFormat.SQL:
            _write_sql(tables, dump.place, spill, output)
            _warn_of_triggers(_triggered(tables))
        else:
            _write_files(tables, format, output)
    for table in tables:
        say(described(table))
    for sentence in moment.remarks:
        say(sentence)
    if wanted.as_of is None:
        report_notes(end(source.log))
    report_problems(source.log)
    return EXIT_DONE


def _opened(dump: "Dump", files: Sequence[Path], wanted: Wanted, spill: Path) -> tuple[list[TableName], DumpedLog]:
    """Return the tables of the dump that are wanted, and the log with what they need."""
    named = binlogs(files, say)
    keys = foreign_keys_of_snapshot(dump.snapshot.foreign_keys)
    found = {text: chosen(text, dump.names) for text in wanted.tables}
    names = [*dict.fromkeys(name for those in found.values() for name in those)]
    if wanted.with_parents:
        needed = with_parents(names, keys)
        names = [name for name in dump.names if name in needed]
    # Further tables may have been created since.
    takes_all = any(is_pattern(text) or not those for text, those in found.items())
    read = [] if takes_all else [".".join(name) for name in {*names, *cascading_parents(names, keys)}]
    is_given = wanted.position is not None
    with progress("reading the log"):
        source = log_after(dump, named, read, spill, is_position_given=is_given)
    return names, source


def _moment(source: DumpedLog, as_of: str | None) -> Moment:
    connection = source.log.connection
    moment = moment_of(connection, SOURCE, as_of)
    is_earlier = moment.place < source.place
    if is_earlier and as_of is None:
        # Events that belong to no transaction may be between the last transaction and the dump.
        return replace(moment, place=source.place, binlog_file=source.binlog_file)
    if is_earlier:
        raise RestoreRefusedError(
            f"The moment {moment} is before the dump, which was taken at {source.binlog_file}:{source.place.pos}.",
            hint="Give an earlier dump.",
        )
    if source.log.problems and moment.place == moment_of(connection, SOURCE, None).place:
        raise RestoreRefusedError(
            f"The log is damaged before the moment, or the moment is not known to be before the damage:"
            f" {source.log.problems[0].message}",
            hint="Copy the file again, or give --as-of with a position before the damage.",
        )
    return moment


def _tables(
    source: DumpedLog, names: list[TableName], moment: Moment, wanted: Wanted, *, needs_documents: bool
) -> list[RestoredTable]:
    """Return the tables at the moment, parents first."""
    known: dict[TableName, BaselineTable | None] = {
        name: dumped_table(source.dump, name, is_locked=wanted.is_locked) for name in names
    }
    created = sorted({(one.schema_name, one.table_name) for one in source.log.versions} - {*source.dump.names})
    for text in wanted.tables:
        own = chosen(text, created)
        if not (own or chosen(text, source.dump.names)):
            raise unknown_name(text, [*source.dump.names, *created])
        known |= dict.fromkeys(own)
    tables: dict[TableName, RestoredTable] = {}
    for name, dumped in known.items():
        is_optional = any(map(is_pattern, wanted.tables))
        table = restored_table(source, name, moment, dumped, is_optional=is_optional, needs_documents=needs_documents)
        if table is None:
            say(f"{'.'.join(name)} did not exist at {moment}.")
        else:
            tables[name] = table
    if not tables:
        raise RestoreRefusedError(f"None of the tables existed at {moment}.", hint="Choose another moment.")
    keys = [key for table in tables.values() for key in table.foreign_keys if key.table == table.table.name]
    for sentence in missing_parents(tables, keys):
        say(sentence)
    return [tables[name] for name in parents_first(tables, keys)]


def _notes(tables: list[RestoredTable], dump: str) -> list[str]:
    moment, place = tables[0].moment, f"{tables[0].source.binlog_file}:{tables[0].source.place.pos}"
    notes = [
        f"binloom restore: {', '.join(table.table.text for table in tables)} as of {moment}",
        f"from the dump {dump}, taken at {place}, and the log after it",
        *(f"definition of {table.table.text}: from {table.origin}" for table in tables if table.origin),
        "generated columns are left out: the server computes them",
        "run it with the mysql or mariadb client, without that client's option --force",
    ]
    if any(column.data_type == "json" for table in tables for column in table.table.stored):
        notes.append(
            "dates, times and decimals in JSON documents that did not change since the dump are texts, as in it"
        )
    return notes


def _write_comparison(tables: list[RestoredTable], dump: str, address: "ServerAddress", output: Path | None) -> None:
    """Write the statements that make the tables of a server as they were."""
    from ingest.sources.dumps.live_read import LiveRead
    from recover.restore.comparison import compared

    live_address = replace(address, warn=lambda sentence: say(f"warning: {sentence}"))
    with progress("comparing"), LiveRead(live_address, [table.table.name for table in tables]) as live:
        found = compared(tables, live)
        changed = [table.table.name for table in found.tables if table.counts]
        triggered = live.tables_with_triggers(changed) if changed else set()
    notes = [*_notes(tables, dump), f"compared with the server at {address}", "triggers of the tables run"]
    # A value that cannot be written is found only now; until then nothing is printed.
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n") as whole:
        whole.writelines(f"{line}\n" for line in found.lines(notes))
        whole.seek(0)
        write_script((line.removesuffix("\n") for line in whole), output)
    _warn_of_triggers(triggered)
    if found.is_empty:
        say("nothing to do: all rows are as they were at the moment.")
        return
    counts = "; ".join(found.counts)
    say(f"the script makes the tables as they were: {counts}. It undoes all later changes of these rows.")


def _triggered(tables: list[RestoredTable]) -> set[TableName]:
    """Return the tables with triggers, as far as the dump and the log tell."""
    from recover.undo.prove.triggers import triggers_in_log

    names, source = [table.table.name for table in tables], tables[0].source
    return {*names} & source.dump.triggered | triggers_in_log(source.log.connection, SOURCE, names)[0]


def _warn_of_triggers(tables: Collection[TableName] | None) -> None:
    """Tell whose triggers will run; None: the user may not see them."""
    if tables is None:
        say(
            "warning: these tables may have triggers, which run when you run the script. The user cannot see them"
            " without the privilege TRIGGER."
        )
    elif tables:
        names = ", ".join(sorted(".".join(name) for name in tables))
        say(
            f"warning: triggers of {names} run when you run the script. They may change the rows that it writes, and"
            " write to other tables. --compare-with shows afterwards which rows differ."
        )


def _write_sql(tables: list[RestoredTable], dump: str, spill: Path, output: Path | None) -> None:
    notes = [*_notes(tables, dump), "triggers of the tables run; the tables must exist, without these rows"]
    lines = sql_lines(tables, notes)
    if output is not None:
        with replaced(output) as part:
            _write_lines(part, lines)
        return
    whole = spill / "restore.sql"
    _write_lines(whole, lines)
    with whole.open(encoding="utf-8", newline="\n") as file:
        shutil.copyfileobj(file, sys.stdout)
    sys.stdout.flush()


def _write_lines(path: Path, lines: Iterator[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _write_files(tables: list[RestoredTable], format: RestoreFormat, output: Path | None) -> None:
    """Write each table to a file: `output`, or one in the new folder `output`."""
    if output is None:
        raise UsageError(f"{format.value} is not written to stdout.", hint="Give --output FILE.")
    write: Callable[[RestoredTable, Path], None] = write_csv if format is RestoreFormat.CSV else write_parquet
    if len(tables) == 1:
        with replaced(output) as part:
            write(tables[0], part)
        return
    if output.exists():
        raise UsageError(
            f"{output} exists, and several tables need a new folder.", hint="Give --output the name of a new folder."
        )
    with replaced(output) as part:
        part.mkdir()
        for table in tables:
            write(table, part / f"{table.table.text.replace('/', '%2F')}.{format.value}")
