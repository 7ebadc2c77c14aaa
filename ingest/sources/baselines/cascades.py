"""Foreign keys whose changes in the rows of some tables are not logged."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from ingest.ddl.actions import INACTIVE_RULES

if TYPE_CHECKING:
    from ingest.sources.baselines.baseline_tables import BaselineTable
    from ingest.sources.servers.information_schema import Schema

Name = tuple[str, str]


@dataclass(frozen=True)
class Cascades:
    """The tables whose changes may change rows of other tables without an entry in the log.

    Attributes
    ----------
    parents
        By table, the 0-based places of the columns that referring tables refer to.
    hidden
        Tables among them that the user may not see: nothing tells which tables they refer to.
    """

    parents: dict[Name, set[int]] = field(default_factory=dict)
    hidden: tuple[Name, ...] = ()

    @classmethod
    def of(cls, tables: Iterable["BaselineTable"], schema: "Schema") -> Self:
        """Return the cascades that reach rows of some tables, also by several foreign keys."""
        names: dict[Name, list[str]] = defaultdict(list)
        for column in schema[0]:
            names[column["schema_name"], column["table_name"]].append(column["column_name"].lower())
        by_child: dict[Name, list[Mapping[str, Any]]] = defaultdict(list)
        for row in schema[2]:
            if any(row[rule] not in INACTIVE_RULES for rule in ("update_rule", "delete_rule")):
                by_child[row["schema_name"], row["table_name"]].append(row)
        found: dict[Name, set[int]] = {}
        waiting = [(table.schema_name, table.table_name) for table in tables]
        seen = {*waiting}
        while waiting:
            for key in by_child[waiting.pop()]:
                parent = (key["referenced_schema_name"], key["referenced_table_name"])
                # The view has the name of the column as the statement has it that made the key.
                referenced = (key["referenced_column_name"] or "").lower()
                places = found.setdefault(parent, set())
                places.update(at for at, name in enumerate(names.get(parent, ())) if name == referenced)
                if parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)
        return cls(found, tuple(parent for parent in found if parent not in names))

    def may_follow(self, name: Name, row: Mapping[str, Any]) -> bool:
        """Return whether a change of a row, as the decoder gives it, may change rows of other tables."""
        if name not in self.parents or row["event_type"] == "INSERT":
            return False
        if row["event_type"] == "DELETE":
            return True
        places = self.parents[name]
        before, after = row["before_values"], row["after_values"]
        lacks_before, lacks_after = (
            {*places} - {*row[columns]} if row[columns] is not None else set()
            for columns in ("before_columns", "after_columns")
        )
        return any(at in lacks_before or before[at] != after[at] for at in places - lacks_after)
