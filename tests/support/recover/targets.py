"""Commands that are run in this process, on the local warehouse or on a cluster."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.in_process import binloom_here
from tests.support.recover.questions import documented_commands

COMMANDS: list[tuple[str, ...]] = [
    ("query", "--format", "json"),
    ("query", "--by", "transaction", "--gtid", "0-1-70,0-1-74", "--where", "after.total > 50", "--changed", "status"),
    ("query", "--table", "shop.*", "--key-from", "1040", "--key-to", "1043", "--type", "update", "--format", "csv"),
    ("query", "--transaction", "binlog.000001:5930"),
    ("query", "--table", "shop.orders", "--type", "insert", "--changed", "status"),
    ("history", "order_items", "1042|1", "--source", "shop-mariadb", "--format", "json"),
    ("history", "shop.orders", "1042", "--source", "shop-mariadb", "--as-of", "2026-11-17T10:00:00"),
    ("history", "shop.orders", "104299", "--source", "shop-mysql"),
    ("state", "shop.customers", "--source", "shop-mysql", "--as-of", "binlog.000001:40000", "--format", "json"),
    ("transactions", "--by", "hour", "--source", "shop-mariadb", "--format", "json"),
    ("undo", "--source", "shop-mysql", "--table", "shop.customers", "--type", "delete", "--with-dependents"),
    ("undo", "--table", "shop.orders", "--where", "after.status = 'cancelled'"),
    ("undo", "--source", "shop-mysql", "--table", "shop.orders", "--type", "delete", "--with-cascades"),
    ("sql", "select count(*), max(committed_at), concat(table_name, '${x}') from row_changes group by all order by 3"),
    ("sql", "select cast(pk_values as int), start_pos / 0, changed_columns[9] from row_changes order by change_id"),
    # The order of the rows of documented queries is left open; their rows have a test of their own.
    *(tuple(words) for words in documented_commands() if "--files" not in words and words[0] != "sql"),
]
"""Commands with the same answer on each target. Some of them end with an error, which is the same too."""


def said(words: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str, str]:
    """Run a command in this process; return its exit code and what it wrote to stdout and stderr."""
    done = binloom_here(*words, env=environment)
    return done.returncode, done.stdout, done.stderr


def on_warehouse(home: Path) -> dict[str, str]:
    """Return the variables of a command that asks a local warehouse."""
    return {"BINLOOM_HOME": str(home), "BINLOOM_TARGET": "local"}
