"""The options that name a live server for a command that also works without one.

A command takes them as one parameter with the name of its option: the address of the server, or None.

>>> @app.command()
... @with_server("--against", help="Compare each row with this server.")
... def undo(against: "ServerAddress | None", force: bool = False) -> None: ...
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from binloom import options
from ingest.errors import UsageError

if TYPE_CHECKING:
    from ingest.sources.servers.address import ServerAddress

OPTIONS: Final[dict[str, tuple[Any, Any]]] = {
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


def with_server(
    *names: str, help: str, may_be_in_defaults: bool = False, has_port: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace a parameter of a command by the options that name a server and the login there.

    Parameters
    ----------
    names, help
        The option that takes the host, such as `--against`, and its other names. The parameter has the first name.
    may_be_in_defaults
        A --defaults-file alone names a server too.
    has_port
        Whether --port is the server's. Without it, HOST:PORT has the port.
    """
    option = names[0]
    replaced = option.removeprefix("--").replace("-", "_")
    login_options = {name: one for name, one in OPTIONS.items() if has_port or name != "port"}
    host = Annotated[str | None, typer.Option(*names, metavar="HOST[:PORT]", help=help)]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def served(**given: Any) -> None:
            place = given.pop(replaced, None)
            login = {key: given.pop(key, default) for key, (_, default) in login_options.items()}
            is_named = place is not None or (may_be_in_defaults and login["defaults_file"] is not None)
            if not is_named:
                _refuse_without_server(option, login)
            command(**{replaced: _address(option, place, **login) if is_named else None}, **given)

        signature = inspect.signature(command, eval_str=True)
        shown = options.with_options(signature, replaced, {replaced: (host, None), **login_options})
        options.take_signature(served, shown)
        return served

    return decorate


def _refuse_without_server(option: str, login: dict[str, Any]) -> None:
    for name, value in login.items():
        if value not in (None, False):
            raise UsageError(
                f"--{name.replace('_', '-')} goes with {option}.", hint=f"Give {option} HOST, or leave it out."
            )


def _address(
    option: str, place: str | None, port: int | None = None, *, ssl_mode: str | None, **given: Any
) -> "ServerAddress":
    from ingest.sources.servers.address import ServerAddress, host_and_port

    host, found = (None, None) if place is None else host_and_port(place, option)
    if found is not None and port not in (None, found):
        raise UsageError(f"{option} has the port {found}, and --port is {port}.", hint="Give one of them.")
    return ServerAddress.of(host, found or port, tls_mode=ssl_mode, **given)
