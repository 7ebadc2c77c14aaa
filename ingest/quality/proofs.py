"""What the models of marts/quality have found, from the table that dbt made of it. Needs no Spark."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq

from ingest.warehouse.files import BUILD_ANEW, data_files, read_errors, read_rows
from ingest.warehouse.home import binloom_home, model_dirs
from ingest.warehouse.tables import SEGMENTS

TABLE = "proofs"
_COLUMNS = [
    "proof_number",
    "proof",
    "violation",
    "quality_model",
    "severity",
    "violations",
    "violations_by_source",
    "checked",
    "unit",
]


@dataclass(frozen=True)
class Proof:
    """What came of one proof.

    Attributes
    ----------
    name
        Its name, as in docs/quality.md and the variable `proof_severity`.
    violation
        What one violation is, as a sentence.
    quality_model
        Model that has the violations, one a row.
    severity
        `warn` or `error`.
    violations
        How many there are.
    checked, unit
        How much was looked at, and in what it is counted.
    """

    name: str
    violation: str
    quality_model: str
    severity: str
    violations: int
    checked: int
    unit: str

    @property
    def is_error(self) -> bool:
        """Whether there are violations, and they are an error."""
        return self.violations > 0 and self.severity == "error"


@dataclass(frozen=True)
class Proofs:
    """What came of all of them.

    Attributes
    ----------
    results
        One for each proof, in the order of the list.
    is_stale
        Whether something has landed since they were built.
    """

    results: list[Proof]
    is_stale: bool


def read_proofs(source_id: str | None = None, home: Path | None = None) -> Proofs | None:
    """Return what the latest build proved; None when the models have not been built.

    Parameters
    ----------
    source_id
        Source whose violations count; None for all. What was looked at is always all of them.
    home
        Folder that binloom keeps everything under; default `$BINLOOM_HOME`, else `.binloom`.
    """
    home = (home or binloom_home()).absolute()
    # In whatever schema dbt built it: the latest, when there is more than one.
    parts = [path for folder in model_dirs(TABLE, home) for path in data_files(folder)]
    if not parts:
        return None
    folder = max(parts, key=lambda path: path.stat().st_mtime).parent
    rows = []
    for path in data_files(folder):
        with read_errors(path, BUILD_ANEW):
            rows += pq.ParquetFile(path).read(columns=_COLUMNS).to_pylist()
    built_at = datetime.fromtimestamp(max(path.stat().st_mtime for path in data_files(folder)), UTC)
    landed_at = [row["recorded_at"] for row in read_rows(SEGMENTS, home, ["recorded_at"])]
    results = [
        Proof(
            name=row["proof"],
            violation=row["violation"],
            quality_model=row["quality_model"],
            severity=row["severity"],
            violations=row["violations"] if source_id is None else dict(row["violations_by_source"]).get(source_id, 0),
            checked=row["checked"],
            unit=row["unit"],
        )
        for row in sorted(rows, key=lambda row: row["proof_number"])
    ]
    return Proofs(results, any(moment.replace(tzinfo=UTC) > built_at for moment in landed_at))
