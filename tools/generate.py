"""`make generate`: writes the files that are generated from facts stored elsewhere.

`test_project.py` fails when one of them differs from the generated text.
"""

import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Final

from ingest.warehouse.descriptions import COLUMN_DESCRIPTIONS
from ingest.warehouse.tables import BINLOG_FILES, RAW_SCHEMA, RAW_TABLES, SEGMENTS
from tests.support.places import PROJECT
from tools import demo_picture, duckdb_models
from tools.reference_page import reference_page

STAGING = PROJECT / "models" / "staging" / "binlog"

_FROM = "Generated from ingest/warehouse/tables.py by `make generate`."
_SOURCE = (
    "The contents of binary logs and schema snapshots, as `binloom ingest` and `binloom snapshot` landed them.",
    "A pure function of the bytes of the files and of the snapshots.",
)
_MODELS = re.compile(r"^(# Hash of the names of all models: )\S+", re.MULTILINE)
# Columns with the time at which a row was landed; a table has at most one of them that counts.
_LANDED_AT = ("recorded_at", "scanned_at", "observed_at", "taken_at")


def main() -> None:
    """Write every generated file."""
    for path, text in GENERATED.items():
        path.write_text(text())
        print(path.relative_to(PROJECT))


def project_file() -> str:
    """Return `dbt_project.yml` with a hash of the names of all models."""
    names = sorted(path.stem for path in (PROJECT / "models").rglob("*.sql"))
    found = sha256(" ".join(names).encode()).hexdigest()[:16]
    return _MODELS.sub(rf"\g<1>{found}", (PROJECT / "dbt_project.yml").read_text(), count=1)


def column_docs() -> str:
    """Return the descriptions of the raw columns, for dbt's `doc()`."""
    blocks = [f"{{% docs {name} %}}\n{text}\n{{% enddocs %}}" for name, text in COLUMN_DESCRIPTIONS.items()]
    return "\n\n".join([f"Columns of the raw tables. {_FROM}", *blocks]) + "\n"


def sources() -> str:
    """Return the raw tables as sources of dbt."""
    lines = [f"# {_FROM}", "sources:", "  - name: binlog", f"    schema: {RAW_SCHEMA}", "    description: >-"]
    lines += [f"      {line}" for line in _SOURCE]
    lines.append("    tables:")
    for table in RAW_TABLES.values():
        lines += [f"      - name: {table.name}", "        description: >-", f"          {table.description}."]
        if landed_at := next((name for name in _LANDED_AT if name in table.columns.names), None):
            lines += ["        config:", f"          loaded_at_field: {landed_at}"]
        if table in (SEGMENTS, BINLOG_FILES):
            lines += ["          freshness:", "            warn_after: {count: 24, period: hour}"]
        lines.append("        columns:")
        for name in table.columns.names:
            lines += [f"          - name: {name}", f"            description: \"{{{{ doc('{name}') }}}}\""]
    return "\n".join(lines) + "\n"


GENERATED: Final[dict[Path, Callable[[], str]]] = {
    STAGING / "_binlog__docs.md": column_docs,
    STAGING / "__sources.yml": sources,
    PROJECT / "dbt_project.yml": project_file,
    PROJECT / "docs" / "reference.md": reference_page,
    duckdb_models.MODELS: duckdb_models.duckdb_models,
    demo_picture.PICTURE: lambda: demo_picture.picture(demo_picture.RECORDED.read_text()),
}
"""The function that returns the text of each generated file."""


if __name__ == "__main__":
    main()
