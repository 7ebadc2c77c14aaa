"""The reason why a table cannot be restored."""

from ingest.errors import EXIT_CHECK_FAILED, BinloomError


class RestoreRefusedError(BinloomError):
    """A dump and a log do not tell exactly which rows a table had."""

    exit_code = EXIT_CHECK_FAILED
