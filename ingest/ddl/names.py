"""Names of tables in a statement."""

from ingest.ddl.tokens import Cursor


class Names:
    """Reads the names of tables.

    Parameters
    ----------
    default_schema
        Schema of a name that says none.
    """

    def __init__(self, default_schema: str | None) -> None:
        self.default_schema = default_schema

    def table(self, cursor: Cursor) -> tuple[str | None, str]:
        """Go past the name of a table: its schema, None when nothing says which, and its name."""
        if cursor.take_sign("."):  # `.t` is a table of the default schema, a habit from ODBC.
            return self.default_schema, cursor.name()
        name = cursor.name()
        if not cursor.take_sign("."):
            return self.default_schema, name
        return name, cursor.value()
