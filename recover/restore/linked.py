"""The last images of rows whose changes link, all at once.

Most logs have whole images, and each begins with the values that the change before it, or the dump, left behind. Then
the last image of a row is the row, and DuckDB finds all of them in one query. It compares digests of 64 bits instead of
images, which are wide. Anything else is left to the engine that follows row by row, which also knows what to tell a
person.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from recover.sources.engine import literal, quoted
from recover.timeline.events import Place, Table

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

_ROWS_AT_ONCE: Final = 8_192
_IN_ORDER: Final = "epoch, file_sequence, start_pos, payload_ordinal, row_ordinal"
_LINKED: Final = f"""create or replace table linked as
select
    {_IN_ORDER}, pk_values, event_type,
    row_number() over of_row = 1 as is_first,
    lead(event_type) over of_row is null as is_last,
    case event_type
        when 'INSERT' then lag(event_type) over of_row = 'DELETE'
        else lag(digest_after) over of_row = digest_before
    end as links,
    digest_of_dumped
from (
    select
        {_IN_ORDER}, pk_values, event_type,
        hash(before_values) as digest_before,
        case when event_type != 'DELETE' then hash(after_values) end as digest_after,
        hash({{dumped}}) as digest_of_dumped
    from row_images
    where {{condition}}
)
window of_row as (partition by pk_values order by {_IN_ORDER})"""


def last_images(
    connection: "DuckDBPyConnection",
    table: Table,
    since: Place,
    until: Place,
    dumped: Sequence[str],
    columns: Sequence[str],
) -> "Iterator[pa.Table] | None":
    """Return the rows at a place that changed since another one, if all of their changes link; otherwise None.

    Parameters
    ----------
    connection
        It has decoded files, and in `dump_rows` the digests of the rows of the dump with the keys of these changes.
    table
        The table. It has a primary key, and no statement has altered it in between.
    since, until
        The two places.
    dumped
        Names of the values of `dump_rows`.
    columns
        The columns that are wanted.
    """
    condition = _between(table, since, until)
    names = _names_of_images(connection, condition)
    if names is None or not {*dumped, *columns} <= {*names}:
        return None
    place = {name: number for number, name in enumerate(names, 1)}
    shared = f"[{', '.join(f'before_values[{place[name]}]' for name in dumped)}]"
    before = "before_values" if [*dumped] == names else shared
    connection.execute(_LINKED.format(condition=condition, dumped=before)).fetchall()
    ((breaks,),) = connection.execute(
        f"""select count(*)
        from linked left join (
            select pk_values, digest from dump_rows
            where schema_name = {literal(table.schema_name)} and table_name = {literal(table.table_name)}
        ) as dumped on is_first and linked.pk_values = dumped.pk_values
        where case
            when not is_first then links is not true
            when event_type = 'INSERT' then dumped.digest is not null
            else dumped.digest is distinct from digest_of_dumped
        end"""
    ).fetchall()
    if breaks:
        connection.execute("drop table linked")
        return None
    values = ", ".join(f"after_values[{place[name]}] as {quoted(name)}" for name in columns)
    connection.execute(
        # The same inputs give the same script.
        f"""create or replace view last_images as
        select {values}
        from (select * from row_images where {condition}) as images
        semi join (select * from linked where is_last and event_type != 'DELETE') as linked using ({_IN_ORDER})
        order by pk_values"""
    )
    return _read(connection, "select * from last_images")


def keep_documents(connection: "DuckDBPyConnection", columns: Sequence[str], into: str) -> None:
    """Make a table of the documents in the images that `last_images` finds."""
    documents = f"[{', '.join(map(quoted, columns))}]"
    connection.execute(
        f"create or replace table {into} as select distinct unnest({documents}) as document from last_images"
    ).fetchall()


def note_plain_keys(connection: "DuckDBPyConnection", table: Table, since: Place, until: Place, into: str) -> bool:
    """Make a table of the keys of the changes between two places; return False if that needs a closer look.

    `note_changed_keys` also knows tables without a key and prepared transactions. It makes a map of each image.
    """
    condition = _between(table, since, until)
    odd = f"select 1 from row_images where {condition} and (pk_values is null or outcome != 'commit') limit 1"
    if _has_prepared(connection) or connection.execute(odd).fetchall():
        return False
    connection.execute(
        f"""create or replace table {into} as
        select distinct unnest([pk_values, coalesce(pk_values_after, pk_values)]) as "key"
        from row_images where {condition}"""
    ).fetchall()
    return True


def _between(table: Table, since: Place, until: Place) -> str:
    return " and ".join(
        (
            f"schema_name = {literal(table.schema_name)} and table_name = {literal(table.table_name)}",
            f"(epoch, file_sequence, start_pos) >= ({since.epoch}, {since.file_sequence}, {since.pos})",
            f"[epoch, file_sequence, start_pos] < [{until.epoch}, {until.file_sequence}, {until.pos}]",
        )
    )


def _has_prepared(connection: "DuckDBPyConnection") -> bool:
    found = connection.execute("select 1 from decoded_transactions where xa_xid is not null limit 1").fetchall()
    return bool(found)


def _names_of_images(connection: "DuckDBPyConnection", condition: str) -> list[str] | None:
    """Return the columns of the images; None if they differ, or if a change is not as it seems."""
    found = connection.execute(
        f"""select distinct
            names, outcome, coalesce(pk_values_after, pk_values) is distinct from pk_values,
            coalesce(len(undecoded_columns), 0) > 0
        from (
            select *, unnest([before_names, after_names]) as names from row_images where {condition}
        ) where names is not null limit 2"""
    ).fetchall()
    if len(found) != 1 or _has_prepared(connection):
        return None
    names, outcome, has_moved, is_partial = found[0]
    return None if outcome != "commit" or has_moved or is_partial else names.split("\0")


def _read(connection: "DuckDBPyConnection", query: str) -> "Iterator[pa.Table]":
    import pyarrow as pa

    cursor = connection.cursor()
    for batch in cursor.sql(query).to_arrow_reader(_ROWS_AT_ONCE):
        yield pa.Table.from_batches([batch])
    connection.execute("drop view last_images; drop table linked").fetchall()
