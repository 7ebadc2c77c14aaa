"""The columns of tables that a value is made of, as a whole and field by field."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

# A table and a column of it.
TableColumn = tuple[str, str]

# A column that stands for all columns of a table, used when nothing lists them.
ANY_COLUMN = "*"


@dataclass(frozen=True)
class Origins:
    """The columns that a value is made of.

    Attributes
    ----------
    whole
        Columns that every part of the value is made of.
    fields
        The fields of a struct in their order, each with what it is made of besides `whole`. An array has the fields of
        its elements. Empty if the value is not a struct, or if its fields are not known.
    """

    whole: frozenset[TableColumn] = frozenset()
    fields: Mapping[str, "Origins"] = field(default_factory=dict)

    def all(self) -> frozenset[TableColumn]:
        return self.whole.union(*(part.all() for part in self.fields.values()))

    def flat(self) -> "Origins":
        """Return the same columns for a value without fields."""
        return Origins(self.all())

    def parts(self) -> dict[str, "Origins"]:
        """Return the known fields, each with all that it is made of."""
        return {name: self.field(name) for name in self.fields}

    def field(self, name: str) -> "Origins":
        """Return what a field is made of: the columns of the whole value if the field is not known."""
        for known, part in self.fields.items():
            if known.lower() == name.lower():
                return Origins(self.whole | part.whole, part.fields)
        return self.flat()


NOTHING = Origins()


def merged(values: Iterable[Origins]) -> Origins:
    """Return what a value is made of that is one of several values, such as the branches of a case."""
    values = list(values)
    structs = [value for value in values if value.fields]
    whole = frozenset().union(*(value.whole for value in values)) if values else frozenset()
    if not structs:
        return Origins(whole)
    names = [name.lower() for name in structs[0].fields]
    if any([name.lower() for name in struct.fields] != names for struct in structs):
        # Spark may match such fields by position.
        return merged([value.flat() for value in values])
    columns = zip(*(struct.fields.values() for struct in structs), strict=True)
    return Origins(whole, dict(zip(structs[0].fields, map(merged, columns), strict=True)))


def combined(values: Iterable[Origins]) -> Origins:
    """Return what a value is made of that is computed from others, and has no field of theirs."""
    return Origins(frozenset().union(*(value.all() for value in values)))


def stored(column: TableColumn, shape: Origins) -> Origins:
    """Return what a value read from a column is made of: the column, with the fields of what was stored in it."""
    return Origins(frozenset([column]), _fields_of(shape))


def _fields_of(shape: Origins) -> dict[str, Origins]:
    return {name: Origins(fields=_fields_of(part)) for name, part in shape.fields.items()}


# Columns of a query or table in their order. A query can give several of one name.
Outputs = Sequence[tuple[str, Origins]]


class NotFollowedError(Exception):
    """The SQL contains something whose columns are not known. The caller falls back to whole tables."""


def column_of(outputs: Outputs, name: str) -> Origins | None:
    """Return a column of a query or table, None if it has none of that name."""
    found = [origins for column, origins in outputs if column.lower() == name.lower()]
    if not found:
        found = [origins for column, origins in outputs if column == ANY_COLUMN]
    if len(found) > 1:
        raise NotFollowedError(f"the column {name} is ambiguous")
    return found[0] if found else None
