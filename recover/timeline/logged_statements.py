"""The statements that made row changes, if the server logged them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class LoggedChange(Protocol):
    """A row change with its place in the log."""

    @property
    def change_id(self) -> str: ...
    @property
    def transaction_id(self) -> str: ...
    @property
    def binlog_file(self) -> str: ...
    @property
    def start_pos(self) -> int: ...


def statements_of(connection: "DuckDBPyConnection", source_id: str, changes: Iterable[LoggedChange]) -> dict[str, str]:
    """Return the text of the statement of each change, by `change_id`; a change without a logged text is missing.

    Parameters
    ----------
    connection
        It has the view `landed_marts.STATEMENTS`.
    source_id
        The source of the changes.
    changes
        Few changes, such as those of one row.
    """
    places = [(change.change_id, *_place(change)) for change in changes]
    if not places:
        return {}
    rows = connection.execute(
        """with changes as (
            select unnest($changes) as change_id, unnest($epochs) as epoch, unnest($files) as binlog_file,
                unnest($transactions) as transaction_pos, unnest($positions) as start_pos,
                unnest($ordinals) as payload_ordinal
        )
        select change_id, arg_max(sql_text, (statements.start_pos, statements.payload_ordinal))
        from changes
        inner join binloom_staging.stg_binlog__statements as statements
            using (epoch, binlog_file, transaction_pos)
        where statements.source_id = $source and kind in ('ROWS_QUERY', 'ANNOTATE')
            and (statements.start_pos, statements.payload_ordinal) < (changes.start_pos, changes.payload_ordinal)
        group by change_id""",
        {
            "source": source_id,
            **dict(
                zip(
                    ("changes", "epochs", "files", "transactions", "positions", "ordinals"),
                    map(list, zip(*places, strict=True)),
                    strict=True,
                )
            ),
        },
    ).fetchall()
    return dict(rows)


def _place(change: LoggedChange) -> tuple[int, str, int, int, int]:
    """Return epoch, file, position of the transaction, own position and ordinal in the payload of a change."""
    epoch, transaction_pos = (change.transaction_id.rsplit("/", 3)[part] for part in (1, 3))
    payload_ordinal = change.change_id.rsplit("/", 2)[1]
    return int(epoch), change.binlog_file, int(transaction_pos), change.start_pos, int(payload_ordinal)
