"""How far the landed tables are behind a followed server."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Lag:
    """How far the landed tables are behind the end of a server's log.

    Attributes
    ----------
    seconds
        0 when all that the server is known to have logged is landed; else seconds since the last landed transaction
        committed, None when none is landed.
    bytes
        Bytes of the log that are not landed: those of the spool, and those that the server has not sent yet.
    transactions
        Transactions that are not landed, None where the server has no GTIDs to count.
    """

    seconds: float | None
    bytes: int
    transactions: int | None
