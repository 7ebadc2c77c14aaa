"""Digests and tags of statements in DuckDB, for those that have none: of files, and of what an older binloom landed.

They are computed only for the rows of which a query reads them.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_FUNCTION: Final = "digest_of_statement"
_TYPE: Final = "struct(digest varchar, digest_text varchar, tags map(varchar, varchar))"
# Masks or an erasure have replaced the text.
_IS_GONE: Final = "(starts_with(sql_text, '-- masked: ') or starts_with(sql_text, 'erased/'))"


def add_digest_function(connection: "DuckDBPyConnection") -> None:
    """Add the function that `with_digests` calls to a connection."""
    from ingest.ddl.digests.digest_batches import DIGEST_TYPE, DigestColumns

    columns = DigestColumns()

    # DuckDB evaluates the annotations.
    def digest(kinds: Any, texts: Any, modes: Any) -> Any:
        import pyarrow as pa

        parts = {"kind": kinds, "sql_text": texts, "sql_mode": modes}
        found = columns.of(pa.RecordBatch.from_pydict({name: part.combine_chunks() for name, part in parts.items()}))
        return pa.StructArray.from_arrays(found, fields=list(DIGEST_TYPE))

    words = ["varchar"] * 3
    connection.create_function(  # type: ignore[call-overload]
        _FUNCTION, digest, words, _TYPE, type="arrow", null_handling="special", side_effects=False
    )


def with_digests(statements: str) -> str:
    """Return a query of statements in which those without a digest have one."""
    computed = f"{_FUNCTION}(kind, case when not {_IS_GONE} then sql_text end, sql_mode)"
    names = ("digest", "digest_text", "tags")
    columns = ", ".join(f"case when digest is null then {computed}.{name} else {name} end as {name}" for name in names)
    return f"select * replace ({columns}) from ({statements})"
