"""The names that an expression can use, and the columns that they stand for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from binloom.site.origins import NotFollowedError, Origins, Outputs, column_of, merged


@dataclass(frozen=True)
class Relation:
    """A table, query or generator in a from clause, under its alias."""

    name: str
    schema: str
    outputs: Outputs


@dataclass(frozen=True)
class Scope:
    """The names in reach of an expression.

    Attributes
    ----------
    tables
        Tables of the project by `schema.name`, and ephemeral models by the name of their CTE, in lower case.
    ctes
        Named queries, by name in lower case.
    relations
        The from clause, for names that are qualified.
    columns
        What `*` gives, for names that are not qualified.
    aliases
        Columns of the same select to the left, which Spark lets later ones use.
    parameters
        Parameters of lambda functions.
    windows
        Named windows of the select.
    outer
        The query around a subquery.
    """

    tables: Mapping[str, Outputs]
    ctes: Mapping[str, Outputs] = field(default_factory=dict)
    relations: tuple[Relation, ...] = ()
    columns: Outputs = ()
    aliases: Outputs = ()
    parameters: Mapping[str, Origins] = field(default_factory=dict)
    windows: Mapping[str, exp.Expression] = field(default_factory=dict)
    outer: "Scope | None" = None

    def inner(self) -> "Scope":
        """Return the scope in which a subquery begins."""
        return Scope(self.tables, self.ctes, parameters=self.parameters, outer=self)

    def with_cte(self, name: str, outputs: Outputs) -> "Scope":
        return replace(self, ctes={**self.ctes, name.lower(): outputs})

    def with_parameters(self, parameters: Mapping[str, Origins]) -> "Scope":
        return replace(self, parameters={**self.parameters, **parameters})

    def with_alias(self, name: str, origins: Origins) -> "Scope":
        """Add a column of the select list. A later one of the same name makes it ambiguous, as in Spark."""
        return replace(self, aliases=(*self.aliases, (name, origins)))

    def joined(self, relation: Relation, keys: Sequence[str], side: str, kind: str) -> "Scope":
        """Add a relation of the from clause.

        Parameters
        ----------
        keys
            Columns of `using`, which both sides have and the result has once.
        side, kind
            As in `left semi`, in upper case.
        """
        left = [output for output in self.columns if output[0].lower() not in keys]
        right = [output for output in relation.outputs if output[0].lower() not in keys]
        shared = [(key, self._key(key, relation, side)) for key in keys]
        if kind in ("SEMI", "ANTI"):
            return replace(self, columns=(*shared, *left))
        return replace(self, relations=(*self.relations, relation), columns=(*shared, *left, *right))

    def _key(self, key: str, relation: Relation, side: str) -> Origins:
        left, right = column_of(self.columns, key), column_of(relation.outputs, key)
        if left is None or right is None:
            raise NotFollowedError(f"using names {key}, which is not on both sides")
        return {"RIGHT": right, "FULL": merged([left, right])}.get(side, left)

    def relation(self, parts: Sequence[str]) -> Relation | None:
        """Return the relation of a name, which is an alias, or a schema and a table."""
        *schema, name = [part.lower() for part in parts]
        for relation in self.relations:
            if relation.name.lower() == name and (not schema or relation.schema.lower() == schema[-1]):
                return relation
        return None

    def value(self, parts: Sequence[str]) -> Origins:
        """Return what a name such as `a`, `a.b` or `a.b.c` stands for: a column, or a field of one.

        Raises
        ------
        NotFollowedError
            Nothing in reach has the name.
        """
        for length in (2, 1):
            relation = self.relation(parts[:length]) if len(parts) > length else None
            column = column_of(relation.outputs, parts[length]) if relation else None
            if column is not None:
                return _field(column, parts[length + 1 :])
        for outputs in (self.columns, self.aliases):
            column = column_of(outputs, parts[0])
            if column is not None:
                return _field(column, parts[1:])
        if self.outer is None:
            raise NotFollowedError(f"nothing has the name {'.'.join(parts)}")
        return self.outer.value(parts)


def _field(origins: Origins, names: Iterable[str]) -> Origins:
    for name in names:
        origins = origins.field(name)
    return origins
