"""Results of the models of marts/quality, read from the table that dbt built. Needs no Spark."""

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
    """Result of one proof.

    Attributes
    ----------
    name
        Name of the proof, as in docs/quality.md and the variable `proof_severity`.
    violation
        Description of a violation, as a sentence.
    quality_model
        Model that contains the violations, one in each row.
    severity
        `warn` or `error`.
    violations
        Number of violations.
    checked, unit
        Number of checked items, and their unit.
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
        """Whether there are violations, and their severity is `error`."""
        return self.violations > 0 and self.severity == "error"


@dataclass(frozen=True)
class Proofs:
    """Results of all proofs.

    Attributes
    ----------
    results
        One result for each proof, in the order of the list.
    is_stale
        Whether something has landed since the models were built.
    """

    results: list[Proof]
    is_stale: bool


def read_proofs(source_id: str | None = None, home: Path | None = None) -> Proofs | None:
    """Return the proofs of the latest build; None when the models have not been built.

    Parameters
    ----------
    source_id
        Source whose violations are counted; None: all sources. `checked` always counts all sources.
    home
        Folder that binloom keeps everything under; default `$BINLOOM_HOME`, else `.binloom`.
    """
    home = (home or binloom_home()).absolute()
    # dbt may have built the table in several schemas: take the latest.
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
