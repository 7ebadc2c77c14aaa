"""Small lineages and facts for the pages of the lineage site, one with hostile names."""

from datetime import UTC, datetime, timedelta

from binloom.site.facts import Activity, Facts, Outcome, Proof, Source
from binloom.site.lineage import Column, Edge, Kind, Lineage, Table

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)

HOSTILE_TABLE = "</script><script>alert(1)</script>"
HOSTILE_COLUMN = """"'><img src=x onerror=alert(1)> größe 𝄞 %41 {{content}}"""


def table(name: str, group: str, parents: tuple[str, ...] = (), columns: tuple[str, ...] = ("id", "value")) -> Table:
    """Return a table with described columns."""
    kind: Kind = "source" if group == "raw" else "seed" if group == "seeds" else "model"
    described = tuple(Column(column, "string", f"Description of `{column}`.") for column in columns)
    sql = None if kind == "source" else f"select * from {' '.join(parents)}"
    return Table(name, "binloom", kind, f"Rows of {name}. More.", described, sql, f"{name}.sql", parents, (), group)


RAW = table("binlog_raw.row_events", "raw", columns=("id", "value", "after_values"))
STAGED = table("stg_row_events", "staging/binlog", (RAW.name,))
CHANGES = table("row_changes", "marts", (STAGED.name,))
PROOFS = table("uncovered_bytes", "marts/quality/bytes", (CHANGES.name,))
LINEAGE = Lineage(
    (RAW, STAGED, CHANGES, PROOFS, table("event_types", "seeds")),
    (
        Edge((RAW.name, "id"), (STAGED.name, "id"), True),
        Edge((RAW.name, "after_values"), (STAGED.name, "value"), False),
        Edge((STAGED.name, "value"), (CHANGES.name, "value"), True),
        Edge((STAGED.name, "id"), (CHANGES.name, "value"), True),
        Edge((CHANGES.name, "value"), (PROOFS.name, "not_described"), True),
    ),
)
HOSTILE = Lineage(
    (RAW, table(HOSTILE_TABLE, "marts", (RAW.name,), (HOSTILE_COLUMN, "half \ud800", "back\u202ewards"))),
    (Edge((RAW.name, "id"), (HOSTILE_TABLE, HOSTILE_COLUMN), True),),
)
FACTS = Facts(
    sources=(Source("shop", "mysql 9.7", 3, 1, 5000, 70, 8, NOON, NOON + timedelta(hours=2), NOON, 1.5),),
    proofs=(
        Proof("uncovered_bytes", "A range of `bytes`", "uncovered_bytes", "error", 0, 5000, "bytes", {}),
        Proof("late_sources", "A source", "late_sources", "warn", 2, 1, "sources", {"shop": 2}),
    ),
    proofs_built_at=NOON,
    activity=(Activity("shop", "shop", HOSTILE_TABLE, ((NOON, 3, 2, 1), (NOON + timedelta(hours=1), 0, 7, 0))),),
    quiet_tables=4,
    tests={"not_null_id": Outcome("fail", 12)},
    tested_at=NOON,
)
LONG_WAY = Lineage(
    (
        RAW,
        *(
            table(f"model_with_a_rather_long_name_{number}", "marts", (f"model_with_a_rather_long_name_{number - 1}",))
            if number
            else table("model_with_a_rather_long_name_0", "staging", (RAW.name,))
            for number in range(20)
        ),
    ),
    (
        Edge((RAW.name, "id"), ("model_with_a_rather_long_name_0", "id"), True),
        *(
            Edge(
                (f"model_with_a_rather_long_name_{number}", "id"),
                (f"model_with_a_rather_long_name_{number + 1}", "id"),
                True,
            )
            for number in range(19)
        ),
    ),
)
"""A way of so many steps that its drawing is broader than a window."""
