"""The steps of an ALTER TABLE with all that the statement says, read again from its text.

The mart `schema_changes` has the steps as short texts, without defaults. The text of the statement has everything, but
how a server reads it depends on its version and on its SQL mode, which the mart lacks, except for modes that the steps
tell. So the statement is read in each way, and a reading counts if it gives the recorded steps.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from ingest.ddl.actions import Action, Column, DefaultValue
from ingest.ddl.sql_modes import ANSI_QUOTES, MODES_OF_VALUES, NO_BACKSLASH_ESCAPES, ORACLE, REAL_AS_FLOAT
from ingest.versions import Flavor

Reading = tuple[Action, ...]
"""The steps of a statement, in their order."""

# Versions that read types, character sets and NULL differently.
_SERVERS: Final[tuple[tuple[Flavor, tuple[int, ...]], ...]] = (
    *(("mysql", version) for version in ((99,), (8, 0, 18), (5, 6))),
    *(("mariadb", version) for version in ((99,), (10, 6), (10, 3))),
)
# Only if no other mode gives the recorded steps.
_RARE_MODES: Final = (ANSI_QUOTES, REAL_AS_FLOAT, ORACLE, ANSI_QUOTES | REAL_AS_FLOAT, ANSI_QUOTES | ORACLE)


@lru_cache(maxsize=1000)
def readings_of(
    text: str, default_schema: str | None, recorded: tuple[str, ...], has_literals: bool = True
) -> tuple[Reading, ...]:
    """Return the readings of a statement that give its recorded steps; more than one if they differ in the rest.

    Parameters
    ----------
    text
        The statement.
    default_schema
        Schema of names without a schema.
    recorded
        Its steps, as the mart `schema_changes` has them.
    has_literals
        Whether the text has the values of the statement. A masked one has others, so its defaults are unknown.
    """
    told = _told_modes(recorded)
    escapes = (0, NO_BACKSLASH_ESCAPES) if "\\" in text else (0,)
    for modes in ((0,), _RARE_MODES):
        found = _readings(
            text, default_schema, recorded, [told | mode | escape for mode in modes for escape in escapes]
        )
        if found:
            return found if has_literals else tuple(map(_without_defaults, found))
    return ()


def _readings(
    text: str, default_schema: str | None, recorded: Sequence[str], modes: Iterable[int]
) -> tuple[Reading, ...]:
    # Importing the tokenizer takes a while, and most tables are never altered.
    from ingest.ddl.statements import actions_of

    found: dict[str, Reading] = {}
    for mode in modes:
        for flavor, version in _SERVERS:
            reading = tuple(actions_of(text, default_schema, mode, flavor, version))
            if len(reading) == len(recorded) and all(map(_is_recorded, reading, recorded)):
                # Columns with different defaults are equal.
                told = tuple(map(_without_spellings, reading))
                found.setdefault(repr(told), told)
    return tuple(found.values())


def _told_modes(recorded: Iterable[str]) -> int:
    """Return the bits of the modes that recorded steps have as their detail."""
    words = {word for step in recorded for word in step.split()}
    return sum(bit for name, bit in MODES_OF_VALUES.items() if name in words)


def _without_spellings(step: Action) -> Action:
    """Return a step without what servers only spell differently: the name of utf8mb3, and collations."""
    columns = (
        replace(one, character_set="utf8mb3" if one.character_set == "utf8" else one.character_set, collation=None)
        for one in step.columns
    )
    return replace(step, columns=tuple(columns))


def _without_defaults(reading: Reading) -> Reading:
    return tuple(replace(step, columns=tuple(map(_without_default, step.columns))) for step in reading)


def _without_default(column: Column) -> Column:
    is_told = column.default is None or column.default.text is None
    return column if is_told else replace(column, default=DefaultValue(None, is_literal=False))


def _is_recorded(step: Action, recorded: str) -> bool:
    """Return whether a step is one that the mart has as a text. Its character set may be that of the session."""
    if step.action == "convert_character_set":
        return recorded.startswith(step.action)
    return recorded == recorded_step(step)


def recorded_step(step: Action) -> str:
    """Return a step as the mart `schema_changes` has it."""
    columns = ", ".join(" ".join(filter(None, (one.name, one.column_type))) for one in step.columns)
    other = ".".join(one for one in (step.other_schema_name, step.other_table_name) if one is not None)
    key = f"({', '.join(step.key_columns)})" if step.key_columns else None
    parts = (step.action, step.column_name, columns or None, step.place, step.after_column, other or None, key)
    return " ".join(part for part in (*parts, step.character_set, step.detail) if part is not None)
