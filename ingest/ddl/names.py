"""Names of tables in a statement."""

from ingest.ddl.tokens import Cursor


class Names:
    """Reads the names of tables.

    Parameters
    ----------
    default_schema
        Schema of names without a schema.
    """

    def __init__(self, default_schema: str | None) -> None:
        self.default_schema = default_schema

    def table(self, cursor: Cursor) -> tuple[str | None, str]:
        """Read the name of a table; return its schema, None when unknown, and its name."""
        if cursor.take_sign("."):  # `.t` is a table of the default schema, a habit from ODBC.
            return self.default_schema, cursor.name()
        name = cursor.name()
        if not cursor.take_sign("."):
            return self.default_schema, name
        return name, cursor.value()
