"""What a person needs of an error of Spark."""

import re
from pathlib import Path

from ingest.warehouse.home import NO_SPACE, is_full

# An error of the analysis ends with its line and a semicolon, the plan follows. A server adds the stack of Java.
_PLAN_OR_STACK = re.compile(r"(;[ \t]*\n|\n\s*at [\w.$]+\().*", re.DOTALL)


def without_plan(message: str) -> str:
    """Return a message without the query plan and the stack behind it."""
    return _PLAN_OR_STACK.sub("", message)


def told(message: str, home: Path) -> str:
    """Return a message without its plan, and with the full disk that it comes from.

    The disk is the reason in the stack, or one that Hive keeps to itself: it says that it cannot instantiate something.
    """
    short = without_plan(message)
    if NO_SPACE in short or not (NO_SPACE in message or is_full(home)):
        return short
    return f"{short.rstrip()}\n{NO_SPACE} on the disk of {home}. Make room, and run the same command again."
