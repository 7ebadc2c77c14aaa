"""The parts of a statement that was read: its literals, and the values that they are."""

from dataclasses import dataclass

Literal = tuple[str, str]
"""Kind of a token and its text."""


@dataclass(frozen=True, slots=True)
class Part:
    """A value of a statement: its column, the place of its literal in the text, and the expression before it.

    Attributes
    ----------
    form
        `set`, `keep`, `document`, or the condition with the column as `c`: `c <=>`, `HEX(c) <=>`. With NULL, the place
        is None.
    literals
        How many literals the value has; those of a document are its text, and the path and all parts of its members.
    members
        The expressions of these members, with `?` for their literals.
    """

    column: str
    form: str
    place: int | None
    literals: int = 1
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """A statement as sqlglot reads it."""

    verb: str
    table: tuple[str, str]
    parts: tuple[Part, ...]
    has_limit: bool
