"""Commands that are run in this process, on the local warehouse or on a cluster."""

import contextlib
import io
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from binloom.cli import app
from binloom.commands.running import run_app
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
    ("sql", "select count(*), max(committed_at), concat(table_name, '${x}') from row_changes group by all order by 3"),
    ("sql", "select cast(pk_values as int), start_pos / 0, changed_columns[9] from row_changes order by change_id"),
    # The order of the rows of documented queries is left open; their rows have a test of their own.
    *(tuple(words) for words in documented_commands() if "--files" not in words and words[0] != "sql"),
]
"""Commands with the same answer on each target. Some of them end with an error, which is the same too."""


def said(words: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str, str]:
    """Run a command in this process; return its exit code and what it wrote to stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    with _environment(environment), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_app(app, words)
    return code, out.getvalue(), err.getvalue()


def on_warehouse(home: Path) -> dict[str, str]:
    """Return the variables of a command that asks a local warehouse."""
    return {"BINLOOM_HOME": str(home), "BINLOOM_TARGET": "local"}


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables for a while. A command that prints rows also changes what a closed pipe does."""
    before, pipe = dict(os.environ), signal.getsignal(signal.SIGPIPE)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        signal.signal(signal.SIGPIPE, pipe)
