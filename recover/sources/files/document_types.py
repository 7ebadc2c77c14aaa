"""The types of the members of JSON documents, which the text of a document does not tell, from binlog files.

Most documents have no such types, and the decoder notes whether those of a file do. Only the rows of files with such
documents are decoded once more, now with the binary form of their documents.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from ingest.errors import BinloomError
from recover.sources.engine import registered

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

    from ingest.binlog import Binlog, TableFilter
    from ingest.binlog.events.table_map import TableMap

CONTRADICTORY: Final = ""
"""The type of a member that is not the same in all documents with the same text."""

_Types = tuple[tuple[str, str], ...]


@dataclass
class DocumentTypes:
    """The types of members of documents, found by the text of the document. Picklable.

    Attributes
    ----------
    otherwise
        The answer for a document that is not here; None: its types are unknown.
    """

    otherwise: Mapping[str, str] | None = None
    _types: dict[bytes, _Types] = field(default_factory=dict, repr=False)
    # Many documents have members of the same types.
    _shared: dict[_Types, _Types] = field(default_factory=dict, repr=False)

    def of(self, document: str) -> Mapping[str, str] | None:
        """Return the types of the members of a document by their paths; None if they are unknown."""
        found = self._types.get(_digest(document))
        return self.otherwise if found is None else dict(found)

    def add(self, document: str, types: Mapping[str, str]) -> None:
        """Add the types of a document."""
        key = _digest(document)
        known = self._types.get(key)
        if known is not None:
            types = _merged(dict(known), types)
        found = tuple(sorted(types.items()))
        self._types[key] = self._shared.setdefault(found, found)


def _digest(document: str) -> bytes:
    return blake2b(document.encode(errors="surrogatepass"), digest_size=16).digest()


def _merged(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    return {path: one[path] if one.get(path) == other.get(path) else CONTRADICTORY for path in {**one, **other}}


@dataclass(frozen=True)
class DocumentsOfFiles:
    """The documents of decoded files.

    Attributes
    ----------
    connection
        It has the decoded rows of the files.
    files
        Name of each file, and the function that opens it for the tables of a filter.
    typed
        The files that have a document with types that its text does not tell.
    """

    connection: "DuckDBPyConnection"
    files: "Sequence[tuple[str, Callable[..., Binlog]]]"
    typed: Collection[str]

    def types(self, tables: Collection[tuple[str, str]], only: str | None = None) -> DocumentTypes:
        """Return the types in the documents of some tables.

        Parameters
        ----------
        tables
            Schema and name, as the files have them.
        only
            Table of the connection with the texts of the documents that are needed, in a column `document`; None: all.
        """
        from ingest.binlog.rows.json_diff import JsonDiffError
        from ingest.binlog.rows.json_types import OtherDocumentError, types_of

        found = DocumentTypes()
        for name, open_file in self.files:
            if name not in self.typed:
                continue
            for document, binary in _documents(self.connection, name, open_file(tables=_only(tables)), only):
                # The image after a partial update has the changes of a document instead of the document.
                with suppress(OtherDocumentError, JsonDiffError):
                    found.add(document, types_of(document, bytes.fromhex(binary.removeprefix("0x"))))
        for document in self._plain(tables, only):
            found.add(document, {})
        return found

    def _plain(self, tables: Collection[tuple[str, str]], only: str | None) -> Iterator[str]:
        """Yield the documents of files that have no types which a text does not tell."""
        columns = self.connection.execute(_PLAIN_COLUMNS, {"typed": list(self.typed)}).fetchall()
        for schema, table, number, name in columns:
            if (schema, table) not in tables:
                continue
            for side in ("before", "after"):
                query = _PLAIN.format(side=side)
                if only is not None:
                    query = f"select * from ({query}) where document in (select document from {only})"
                found = self.connection.execute(query, {"number": number, "name": name}).fetchall()
                yield from (document for (document,) in found)


def _only(tables: Collection[tuple[str, str]]) -> "TableFilter":
    from ingest.binlog import TableFilter

    class Only(TableFilter):
        def takes(self, schema: str, table: str) -> bool:
            return (schema, table) in tables

    return Only()


def _documents(
    connection: "DuckDBPyConnection", file: str, log: "Binlog", only: str | None
) -> Iterator[tuple[str, str]]:
    """Yield the text and the binary form of the documents in a file."""
    log.json_as_bytes = True
    # The defects of a file were reported when its rows were decoded.
    with suppress(BinloomError):
        for batch in log.row_batches():
            for table_map in log.table_maps:
                yield from _documents_of_map(connection, file, batch, table_map, only)


def _documents_of_map(
    connection: "DuckDBPyConnection", file: str, batch: "pa.RecordBatch", table_map: "TableMap", only: str | None
) -> Iterator[tuple[str, str]]:
    import pyarrow as pa

    places = [column.ordinal + 1 for column in table_map.columns if column.type == "JSON"]
    with registered(connection, "batch", pa.Table.from_batches([batch])):
        for place in places:
            for side in ("before", "after"):
                query = _QUERY.format(side=side)
                if only is not None:
                    query = f"select * from ({query}) where document in (select document from {only})"
                parameters = {"file": file, "map": table_map.table_map_id, "place": place}
                yield from connection.execute(query, parameters).fetchall()


# A partial image of `decoded_rows` has only the values that it names.
_QUERY: Final = """
    select distinct
        decoded.{side}_values[list_position(
            string_split(coalesce(decoded.partial_{side}_names, bindings.joined_names), chr(0)), bindings.names[$place]
        )] as document,
        batch.{side}_values[$place] as bytes
    from batch
    inner join bindings
        on
            batch.table_map_id::varchar = bindings.table_map_id
            and bindings.binlog_file = $file
            and batch.start_pos >= bindings.first_pos
            and batch.start_pos < bindings.end_pos
    inner join decoded_rows as decoded
        on
            decoded.binding = bindings.number
            and decoded.start_pos = batch.start_pos
            and decoded.payload_ordinal = batch.payload_ordinal
            and decoded.row_ordinal = batch.row_ordinal
    where batch.table_map_id::varchar = $map and document is not null and bytes is not null"""

_PLAIN_COLUMNS: Final = """
    select bindings.schema_name, bindings.table_name, bindings.number, columns.column.name
    from bindings
    inner join (
        select table_version_id, unnest(columns) as "column" from binloom.table_versions
    ) as columns
        using (table_version_id)
    where columns.column.data_type = 'json' and not list_contains($typed, bindings.binlog_file)"""
_PLAIN: Final = """
    select distinct
        {side}_values[list_position(
            string_split(coalesce(partial_{side}_names, bindings.joined_names), chr(0)), $name
        )] as document
    from decoded_rows
    inner join bindings on decoded_rows.binding = bindings.number
    where bindings.number = $number and document is not null"""
