"""The options that name a live server for a command that also works without one.

A command takes them as one parameter, the address of the server, or None:

>>> @app.command()
... @with_server
... def undo(against: "ServerAddress | None", force: bool = False) -> None: ...
"""

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, Final

import typer

from binloom import options
from ingest.errors import UsageError

_PLACE: Final = re.compile(r"(?:\[(?P<address>[^\[\]]+)\]|(?P<host>[^:\[\]]+))(?::(?P<port>[0-9]{1,5}))?")
_AGAINST: Final = Annotated[
    str | None,
    typer.Option("--against", metavar="HOST[:PORT]", help="Compare each row with this server; print what fits."),
]
OPTIONS: Final[dict[str, tuple[Any, Any]]] = {
    "against": (_AGAINST, None),
    "port": (options.Port, None),
    "user": (options.User, None),
    "defaults_file": (options.DefaultsFile, None),
    "tls_ca": (options.TlsCa, None),
    "tls_cert": (options.TlsCert, None),
    "tls_key": (options.TlsKey, None),
    "ssl_mode": (options.SslMode, None),
    "enable_cleartext_plugin": (options.EnableCleartextPlugin, False),
    "get_server_public_key": (options.GetServerPublicKey, False),
    "server_public_key_path": (options.ServerPublicKeyPath, None),
}


def with_server(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `against` of a command by the options that name a server and the login there."""
    signature = inspect.signature(command, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != "against"]
    further = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in OPTIONS.items()
    ]

    @wraps(command)
    def served(**given: Any) -> None:
        server = {name: given.pop(name, default) for name, (_, default) in OPTIONS.items()}
        command(against=_address(**server), **given)

    parameters = [*(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own), *further]
    served.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    served.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": None}
    return served


def _address(against: str | None, port: int | None, ssl_mode: str | None, **given: Any) -> Any:
    """Return the address of the server, None if no server is given."""
    if against is None:
        named = {"port": port, "ssl_mode": ssl_mode, **given}
        for name, value in named.items():
            if value not in (None, False):
                raise UsageError(
                    f"--{name.replace('_', '-')} goes with --against.", hint="Give --against HOST, or leave it out."
                )
        return None
    from ingest.sources.address import ServerAddress

    host, found = _host_and_port(against)
    if found is not None and port not in (None, found):
        raise UsageError(f"--against has the port {found}, and --port is {port}.", hint="Give one of them.")
    return ServerAddress.of(host, found or port, tls_mode=ssl_mode, **given)


def _host_and_port(text: str) -> tuple[str, int | None]:
    """Return host and port of `HOST`, `HOST:PORT`, `[ADDRESS]:PORT` or an IPv6 address, which has colons of its own."""
    if text.count(":") > 1 and not text.startswith("["):
        return text, None
    found = _PLACE.fullmatch(text)
    if found is None:
        raise UsageError(f"{text!r} is not the address of a server.", hint="Give --against HOST or HOST:PORT.")
    return found["address"] or found["host"], int(found["port"]) if found["port"] else None
