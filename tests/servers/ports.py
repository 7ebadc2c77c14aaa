"""Ports that no other process takes, whether or not anything listens there."""

import socket
from typing import Self


class ReservedPort:
    """A port of this machine, reserved until `free`; also a context manager.

    The kernel gives a port that is bound to no other program that asks for any free port. A server may still listen
    there, stop, and start again: like servers, the reservation has `SO_REUSEADDR`, and it does not listen.

    Attributes
    ----------
    number
        The number of the port.
    """

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number = int(self._socket.getsockname()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def free(self) -> None:
        """Let other programs have the port."""
        self._socket.close()
