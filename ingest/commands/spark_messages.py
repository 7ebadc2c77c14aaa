"""What a person needs of an error of Spark."""

import re

# An error of the analysis ends with its line and a semicolon, the plan follows. A server adds the stack of Java.
_PLAN_OR_STACK = re.compile(r"(;[ \t]*\n|\n\s*at [\w.$]+\().*", re.DOTALL)


def without_plan(message: str) -> str:
    """Return a message without the query plan and the stack behind it."""
    return _PLAN_OR_STACK.sub("", message)
