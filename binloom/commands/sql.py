"""`binloom sql`: answer a query on the marts."""

import itertools
import sys
from typing import Final

from binloom.commands.build_record import has_built_everything
from binloom.commands.open_log import report_writer
from binloom.commands.output import Format, print_rows, say
from ingest.errors import EXIT_DONE
from ingest.warehouse.home import binloom_home
from recover.questions.sql import ask, ask_cluster
from recover.sources.cluster.thrift import Cluster, is_cluster_target

# A table for people is aligned, so all of its rows are in memory.
_TEXT_ROWS: Final = 1000


def print_answer(question: str, format: Format) -> int:
    """Print the rows that answer a query; `-` reads it from stdin."""
    if question == "-":
        question = sys.stdin.read()
    home = binloom_home()
    is_local = not is_cluster_target()
    if is_local:
        answer = ask(question, home, say, is_current=has_built_everything(home))
    else:
        answer = ask_cluster(question, Cluster.of_environment())
    if is_local:
        report_writer(home)
    if format is not Format.TEXT:
        print_rows(answer.columns, answer.rows, format)
        return EXIT_DONE
    print_rows(answer.columns, itertools.islice(answer.rows, _TEXT_ROWS), format)
    if next(answer.rows, None) is not None:
        say(f"these are the first {_TEXT_ROWS} rows; --format csv and --format json print all of them.")
    return EXIT_DONE
