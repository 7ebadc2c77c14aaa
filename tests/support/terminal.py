"""A stream that commands take for a terminal."""

import io


class Terminal(io.StringIO):
    """Keeps what is written to it as if to a terminal."""

    def isatty(self) -> bool:
        return True
