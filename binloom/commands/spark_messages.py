"""Shorten Spark's error messages for people."""

import re
from pathlib import Path

from ingest.warehouse.home import NO_SPACE, comes_of_a_full_disk

_LEFT_FOLDER = re.compile(r"as its associated location '([^']+)' already exists\.")
# The query plan follows an analysis error after a semicolon at the end of a line. A server adds the Java stack.
_PLAN_OR_STACK = re.compile(r"(;[ \t]*\n|\n\s*at [\w.$]+\().*", re.DOTALL)

LOST_CONNECTION = "The connection to the Thrift server was lost"
NO_SERVER = "No Thrift server answers at"


def is_of_lost_server(message: str) -> bool:
    """Return whether a statement failed only because its Thrift server was lost."""
    return LOST_CONNECTION in message or NO_SERVER in message


def without_plan(message: str) -> str:
    """Return a message without the query plan and the Java stack after it."""
    return _PLAN_OR_STACK.sub("", message)


def told(message: str, home: Path) -> str:
    """Return a message without its query plan, and with the remedy if a full disk or a killed build is the cause.

    The stack contains the full disk as the cause, or Hive hides it and only reports that it cannot instantiate a class.
    """
    short = without_plan(message)
    if (left := _LEFT_FOLDER.search(short)) is not None:
        return (
            f"A build that was killed left the folder {left[1]}, and Spark creates no table over it. If no other build"
            " is running on this cluster, run the same command with --vars 'clear_dead_build: true'."
        )
    if NO_SPACE in short or not comes_of_a_full_disk(message, home):
        return short
    return f"{short.rstrip()}\n{NO_SPACE} on the disk of {home}. Free some space, and run the same command again."
