"""Queries that DuckDB and Spark must answer alike: each function that `binloom sql` accepts, and those of the docs."""

import re
import shlex
from datetime import datetime
from decimal import Decimal
from typing import Any

from recover.sources.home.marts import MART_SCHEMA
from tests.support.places import PROJECT

QUESTIONS = [
    """select table_name, count(*), count(gtid), count(distinct event_type), count_if(event_type = 'INSERT'),
        sum(row_ordinal), avg(row_ordinal), min(start_pos), max(gtid), any_value(schema_name)
    from row_changes group by all""",
    """select max_by(change_id, start_pos), min_by(change_id, start_pos)
    from row_changes where source_id = 'followed' and table_name = 'boats'""",
    "select table_name, size(collect_list(gtid)), size(collect_set(event_type)) from row_changes group by all",
    """select change_id, row_number() over (partition by source_id, table_name order by change_id),
        rank() over (order by table_name), dense_rank() over (order by table_name desc),
        lag(change_id) over (order by change_id), lead(pk_values, 2) over (order by change_id),
        first_value(gtid) over (partition by source_id order by change_id),
        last_value(gtid) over (partition by source_id order by change_id),
        sum(start_pos) over (partition by table_name order by change_id)
    from row_changes""",
    """select change_id, coalesce(row_before['name'], row_after['name'], '?'), nullif(event_type, 'INSERT'),
        if(row_before is null, 'new', 'old'), case when start_pos > 1000 then 'late' when gtid is null then 'none' end,
        greatest(start_pos, end_pos, null), least(row_ordinal, 1), abs(row_ordinal - 5), thread_id / 2, start_pos % 7
    from row_changes""",
    """select change_id, concat(table_name, ':', row_after['name']), concat_ws('/', source_id, gtid, pk_values),
        lower(event_type), upper(table_name), length(row_after['name']), replace(binlog_file, '0', 'o'),
        trim(concat(' ', table_name, ' ')), startswith(table_name, 'b'), endswith(table_name, 's'),
        contains(row_after['name'], 'd'), table_name rlike '^b.*s$', table_name like '%oat%', table_name ilike 'BOAT_'
    from row_changes""",
    """select change_id, array_contains(changed_columns, 'n'), size(changed_columns), array_join(changed_columns, ', '),
        filter(changed_columns, name -> name > 'm'), transform(changed_columns, name -> row_after[name]),
        changed_columns[0]
    from row_changes where event_type = 'UPDATE'""",
    "select change_id, explode(changed_columns) as name from row_changes",
    """select date_format(date_trunc('hour', event_timestamp), 'yyyy-MM-dd HH:mm:ss'), hour(event_timestamp),
        minute(event_timestamp), count(*)
    from row_changes
    where event_timestamp >= timestamp '2026-01-01 00:00:00' and event_timestamp < '2100-01-01 00:00:00'
    group by all""",
    """select change_id, cast(start_pos as string), cast(pk_values as bigint), try_cast(row_after['name'] as int),
        cast(row_after['n'] as decimal(20, 2)), start_pos > 500 and (row_ordinal = 0 or gtid is null)
    from row_changes where table_name = 'boats'""",
    """with changes as (select * from row_changes where event_type != 'DELETE'),
        several as (select transaction_pos, binlog_file from changes group by all having count(*) > 1)
    select changes.change_id, transactions.outcome, transactions.row_events
    from changes
    inner join several
        on changes.transaction_pos = several.transaction_pos and changes.binlog_file = several.binlog_file
    left join transactions
        on changes.source_id = transactions.source_id and changes.epoch = transactions.epoch
            and changes.binlog_file = transactions.binlog_file
            and changes.transaction_pos = transactions.start_pos
    where exists (select 1 from binloom_quality.proofs where proofs.proof is not null)""",
    """select source_id, epoch, binlog_file, event_hour from row_changes
    union select source_id, epoch, binlog_file, '' from transactions""",
    "select proof, severity, violations, checked from binloom_quality.proofs order by proof limit 5",
    "select gtid, pk_values from row_changes order by gtid desc, change_id limit 3",
]


def documented_commands() -> list[list[str]]:
    """Return the commands of docs/questions.md, each as a shell gives its words to binloom."""
    text = (PROJECT / "docs" / "questions.md").read_text()
    found = []
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            words = shlex.split(command)
            if words[0] == "binloom":
                found.append([path for word in words[1:] for path in _expanded(word)])
    return found


def _expanded(word: str) -> list[str]:
    """Return the files that a shell makes of a pattern."""
    paths = sorted(PROJECT.glob(word)) if word.startswith("samples/") else []
    return [str(path.relative_to(PROJECT)) for path in paths] or [word]


def documented_questions() -> list[str]:
    """Return the queries of docs/questions.md, without limits: which of equal rows are the first is left open."""
    queries = [command[1] for command in documented_commands() if command[0] == "sql"]
    return [re.sub(r"\blimit \d+", "", query) for query in queries]


def in_schema(question: str) -> str:
    """Return a query whose tables have a schema, as Spark needs it."""
    return re.sub(
        r"\b(from|join) (row_changes|transactions|schema_changes|quarantined_row_events)\b",
        rf"\1 {MART_SCHEMA}.\2",
        question,
    )


def comparable(value: Any) -> Any:
    """Return a value of either engine in one form; the order of a set is not compared."""
    match value:
        case tuple() | list():
            return [comparable(each) for each in value]
        case dict():
            return {key: comparable(value[key]) for key in sorted(value)}
        case datetime():
            return value.replace(tzinfo=None)
        case Decimal() | float():
            return f"{value:.6f}"
        case _:
            return value
