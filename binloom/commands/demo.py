"""`binloom demo`: from the binlog files of a recorded morning of a shop to answers.

The answers are queries on the marts, as a person would ask them in an incident. This module contains no facts about the
recording.
"""

import os
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from binloom.commands.build_record import build_inputs, record_good_build
from binloom.commands.ingest import land_files, summary
from binloom.commands.output import print_line, print_table, progress, say
from binloom.commands.project import BUILD, build_site, clone_dir, project_dir, run_dbt
from binloom.commands.quality import summary as gate_summary
from ingest.errors import EXIT_CHECK_FAILED, MetastoreLockedError, StoreError, UsageError
from ingest.warehouse.home import HOME_VARIABLE
from ingest.words import counted

SOURCES = ("shop-mysql", "shop-mariadb")
_MARTS, _STAGING = "binloom", "binloom_staging"

# Key columns of a transaction.
_TRANSACTION = ("source_id", "epoch", "binlog_file", "transaction_pos")

# Times are selected as text: Python datetimes would be converted to this machine's time zone.

# Number of rows for each table and kind of change.
_PER_TABLE = """
select
    source_id,
    concat(schema_name, '.', table_name) as full_name,
    count_if(event_type = 'INSERT') as inserts,
    count_if(event_type = 'UPDATE') as updates,
    count_if(event_type = 'DELETE') as deletes,
    date_format(min(event_timestamp), 'yyyy-MM-dd HH:mm:ss') as first_change,
    date_format(max(event_timestamp), 'yyyy-MM-dd HH:mm:ss') as last_change
from {marts}.row_changes
group by all
order by source_id, full_name
"""

# The transaction that updated the most rows of one table: so many changes at once are probably a mistake.
_DAMAGE = """
with updates as (

    select
        *,
        coalesce(gtid, concat(binlog_file, ':', transaction_pos)) as transaction_id,
        explode(changed_columns) as changed_column
    from {marts}.row_changes
    where event_type = 'UPDATE'

),

per_transaction as (

    select
        source_id,
        epoch,
        binlog_file,
        transaction_pos,
        transaction_id,
        schema_name,
        table_name,
        any_value(thread_id) as thread_id,
        date_format(min(event_timestamp), 'HH:mm:ss') as changed_at,
        count(distinct change_id) as rows,
        array_sort(collect_set(changed_column)) as columns,
        count(distinct row_after[changed_column]) as distinct_values,
        any_value(row_after[changed_column]) as new_value
    from updates
    group by all

),

ranked as (

    select
        *,
        row_number() over (partition by source_id order by rows desc, changed_at) as place
    from per_transaction

)

select *
from ranked
where place = 1
order by source_id desc
"""

# Original statement, if the server logs it (MariaDB does, MySQL with binlog_rows_query_log_events).
_STATEMENT = """
select sql_text
from {staging}.stg_binlog__statements
where
    source_id = :source_id
    and epoch = :epoch
    and binlog_file = :binlog_file
    and transaction_pos = :transaction_pos
    and kind in ('ANNOTATE', 'ROWS_QUERY')
order by start_pos
limit 1
"""

# The row with the most changes in the whole recording, among the rows that this transaction changed.
_MOST_CHANGED_ROW = """
select
    hit.pk_values,
    count(*) as changes
from {marts}.row_changes as hit
inner join {marts}.row_changes as other
    on
        hit.source_id = other.source_id
        and hit.schema_name = other.schema_name
        and hit.table_name = other.table_name
        and hit.pk_hash = other.pk_hash
where
    hit.source_id = :source_id
    and hit.epoch = :epoch
    and hit.binlog_file = :binlog_file
    and hit.transaction_pos = :transaction_pos
    and hit.table_name = :table_name
group by hit.pk_values
order by changes desc, hit.pk_values
limit 1
"""

_ROW_HISTORY = """
select
    date_format(event_timestamp, 'HH:mm:ss') as changed_at,
    thread_id,
    event_type,
    changed_columns,
    map_entries(row_before) as before,
    map_entries(row_after) as after
from {marts}.row_changes
where
    source_id = :source_id
    and schema_name = :schema_name
    and table_name = :table_name
    and pk_values = :pk_values
order by epoch, file_sequence, start_pos, payload_ordinal, row_ordinal
"""


def run_demo() -> int:
    """Land the samples in a separate home for the demo, check, build, and print the answers."""
    started = time.monotonic()
    samples = project_dir() / "samples"
    for source in SOURCES:
        if not (samples / source).is_dir():
            raise UsageError(
                f"The recorded sample {samples / source} is missing.",
                hint="Restore it with `git checkout -- samples`, or install binloom again.",
            )
    home = _fresh_home()

    from ingest.landing import land_snapshot
    from ingest.quality.gate import run_gate
    from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
    from ingest.warehouse.spark import SparkLaunch

    # One session for all steps that need one; Java starts while the files are landed, which needs none.
    with SparkLaunch(home, short_lived=True) as launch:
        _heading("A shop's morning, recorded on real servers")
        for source in SOURCES:
            land_snapshot(source, read_snapshot_dir(samples / source / "schema"))
            landed = land_files(source, samples / source)
            for problem in landed.problems:
                say(str(problem.error))
            _line("landed", f"{source}: {summary(landed)}")
        with progress("starting Spark"):
            spark = launch.session()
        with progress("checking the landed rows"):
            gate = run_gate()
        _line("checked", gate_summary(gate))
        with progress("building the models") as advance:
            inputs = build_inputs(home)
            build = run_dbt(BUILD, home, advance)
        _line("built", build.summary)
        for name in build.warnings:
            _line("", f"warns: {name}")
        if build.failures:
            for failure in build.failures:
                _line("", f"fails: {failure}")
            say(f"the models could not be built. The log is {home / 'logs' / 'dbt.log'}.")
            return EXIT_CHECK_FAILED
        record_good_build(home, BUILD, inputs, build.warnings)
        with progress("drawing the lineage") as advance:
            page = build_site(home / "site", home, advance, compile=False)
        damage = _answers(spark)
        _heading("SQL that takes it back, proved on the rows of the log")
        for transaction in damage:
            _take_back(transaction, home)
    print_line()
    print_line(f"The lineage site: {page}")
    print_line(f"The tables are in {home / 'warehouse'}. All of it took {time.monotonic() - started:.0f} seconds.")
    for transaction in damage[:1]:
        _suggest(transaction, home)
    return gate.exit_code


def _fresh_home() -> Path:
    """Empty the demo's home, make it the home of this process and its children, and return it."""
    from ingest.warehouse.home import binloom_home
    from ingest.warehouse.spark import metastore_holder

    home = binloom_home() / "demo"
    if (holder := metastore_holder(home)) is not None:
        raise MetastoreLockedError(
            f"Another process (pid {holder}) holds the demo's metastore in {home / 'metastore'}.",
            hint="Wait until that demo has ended, or end it, and try again.",
        )
    try:
        if home.exists():
            shutil.rmtree(home)
        home.mkdir(parents=True)
    except OSError as error:
        raise StoreError(
            f"The demo cannot recreate its folder {home}: {error.strerror} ({error.filename}).",
            hint=f"Delete it, or set {HOME_VARIABLE} to a folder that can be written.",
        ) from error
    os.environ[HOME_VARIABLE] = str(home)
    return home


def _answers(spark: Any) -> list[dict[str, Any]]:
    """Print the answers; return the transactions that did the damage."""

    def ask(question: str, **values: Any) -> list[dict[str, Any]]:
        text = question.format(marts=_MARTS, staging=_STAGING)
        return [row.asDict() for row in spark.sql(text, args=values).collect()]

    _heading("What changed")
    columns = ("source", "table", "inserts", "updates", "deletes", "first_change", "last_change")
    print_table(columns, [list(row.values()) for row in ask(_PER_TABLE)])

    _heading("Which transaction did the damage")
    damage = ask(_DAMAGE)
    for transaction in damage:
        _damage(transaction, ask(_STATEMENT, **{name: transaction[name] for name in _TRANSACTION}))

    for transaction in damage[:1]:
        (row,) = ask(_MOST_CHANGED_ROW, **{name: transaction[name] for name in (*_TRANSACTION, "table_name")})
        table = f"{transaction['schema_name']}.{transaction['table_name']}"
        _heading(f"What happened to one of those rows, {table} {row['pk_values']} in {transaction['source_id']}")
        transaction["pk_values"] = row["pk_values"]
        of_table = {name: transaction[name] for name in ("source_id", "schema_name", "table_name")}
        history = ask(_ROW_HISTORY, **of_table, pk_values=row["pk_values"])
        print_table(("time", "thread", "change", "from_what_to_what"), map(_change, history), width=110)
    return damage


def _suggest(transaction: dict[str, Any], home: Path) -> None:
    """Print three commands to try; they need the row that `_answers` has added to the transaction."""
    source, place = transaction["source_id"], f"{transaction['binlog_file']}:{transaction['transaction_pos']}"
    table = f"{transaction['schema_name']}.{transaction['table_name']}"
    generate = (["generate", "--source", source], "models with columns and types, in models/tables")
    init = (["init", "shop"], "a dbt project of your own, for models of these tables")
    commands = (
        (["history", table, transaction["pk_values"], "--source", source], "one row through time"),
        (["query", "--source", source, "--transaction", place], "what the transaction did"),
        init if clone_dir() is None else generate,
    )
    lines = [(shlex.join(["binloom", *words]), purpose) for words, purpose in commands]
    width = max(len(command) for command, _ in lines)
    _heading("Three things to try; docs/questions.md has more")
    print_line(f"  export {HOME_VARIABLE}={shlex.quote(str(home))}")
    for command, purpose in lines:
        print_line(f"  {command:<{width}}  # {purpose}")


def _take_back(transaction: dict[str, Any], home: Path) -> None:
    """Write the SQL that takes a transaction back and a report of it; print the commands and what they tell."""
    from binloom.answers.opening import Inputs
    from binloom.commands.build_record import has_built_everything
    from binloom.commands.incident import SHOWN_ROWS, undo_command, write_report
    from binloom.commands.open_log import spilling_log
    from binloom.commands.undo import print_script
    from recover.selection.filters import Filters
    from recover.undo.options import UndoOptions

    source, place = transaction["source_id"], f"{transaction['binlog_file']}:{transaction['transaction_pos']}"
    script = home / f"undo-{source}.sql"
    print_line(f"  $ binloom undo --source {source} --transaction {place} --output {script}")
    filters = Filters.of(sources=[source], transactions=[place])
    inputs = Inputs(has_built_everything=has_built_everything)
    with spilling_log([source], inputs) as log:
        print_script(log, filters, UndoOptions(), output=script, tell=lambda sentence: print_line(f"    {sentence}"))
    statement = next(line for line in script.read_text().splitlines() if line.startswith("UPDATE"))
    print_line(f"    {statement}")
    report = home / f"incident-{source}.html"
    print_line(f"  $ binloom incident --source {source} --transaction {place} --output {report}")
    with spilling_log([source], inputs) as log:
        write_report(
            log,
            filters,
            None,
            SHOWN_ROWS,
            report,
            undo_command(filters, inputs),
            tell=lambda sentence: print_line(f"    {sentence}"),
        )


def _damage(transaction: dict[str, Any], statements: list[dict[str, Any]]) -> None:
    columns = " and ".join(transaction["columns"])
    value = f" to '{transaction['new_value']}'" if transaction["distinct_values"] == 1 else ""
    thread = f" thread {transaction['thread_id']}" if transaction["thread_id"] is not None else " somebody"
    margin = " " * (len(transaction["source_id"]) + 2)
    lines = [
        f"{transaction['source_id']}: at {transaction['changed_at']}{thread} set {columns}{value} in"
        f" {counted(transaction['rows'], 'row')} of {transaction['schema_name']}.{transaction['table_name']}",
        f"{margin}transaction {transaction['transaction_id']}, {transaction['binlog_file']} at position"
        f" {transaction['transaction_pos']}",
        *(f"{margin}the statement: {row['sql_text']}" for row in statements),
    ]
    for line in lines:
        print_line(f"  {line}")


def _change(row: dict[str, Any]) -> list[Any]:
    before, after = _image(row["before"]), _image(row["after"])
    match row["event_type"]:
        case "INSERT":
            text = ", ".join(f"{name} {_text(value)}" for name, value in after.items() if value is not None)
        case "DELETE":
            text = "gone"
        case _:
            text = ", ".join(
                f"{name}: {_text(before.get(name))} → {_text(after.get(name))}" for name in row["changed_columns"]
            )
    return [row["changed_at"], row["thread_id"], row["event_type"], text]


def _image(entries: list[Any] | None) -> dict[str, str | None]:
    return {entry["key"]: entry["value"] for entry in entries or ()}


def _text(value: str | None) -> str:
    return "NULL" if value is None else value


def _heading(text: str) -> None:
    print_line()
    print_line(text)
    print_line()
    sys.stdout.flush()


def _line(what: str, sentence: str) -> None:
    print_line(f"  {what:<10}{sentence}")
    sys.stdout.flush()
