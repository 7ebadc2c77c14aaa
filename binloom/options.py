"""Options that several commands have."""

import inspect
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand
from typer.models import TyperPath

from binloom.commands.output import Format
from ingest.errors import UsageError

# As the value of a key, or of the first of its columns.
_NEGATIVE: Final = re.compile(r"-[0-9]")


def with_options(signature: inspect.Signature, name: str, options: Mapping[str, tuple[Any, Any]]) -> inspect.Signature:
    """Return a signature with options in the place of a parameter, by name with annotation and default."""
    found: list[inspect.Parameter] = []
    for own, parameter in signature.parameters.items():
        named = options if own == name else {own: (parameter.annotation, parameter.default)}
        found += [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for key, (annotation, default) in named.items()
        ]
    return signature.replace(parameters=found)


def take_signature(command: Any, signature: inspect.Signature) -> None:
    """Let a function be called with the options of a signature; typer reads both of these."""
    command.__signature__ = signature
    command.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()} | {"return": None}


def not_empty(parameter: typer.CallbackParam, value: Any) -> Any:
    """Return the value of an option. An empty text is refused: as a filter it would select everything."""
    texts = value if isinstance(value, list) else [value]
    if any(isinstance(text, str) and not text.strip() for text in texts):
        raise UsageError(
            f"{parameter.opts[0]} is empty.",
            hint="Give it a value, or leave it out; a variable of the shell that is not set gives an empty value.",
        )
    return value


class CommandWithKey(TyperCommand):
    """A command with the key of a row among its arguments: `-5` is a key, and no option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of a command line; a number after an option is the value of this option."""
        keys = [
            place
            for place, word in enumerate(args)
            if _NEGATIVE.match(word) and "--" not in args[:place] and not (place and args[place - 1].startswith("-"))
        ]
        others = [word for place, word in enumerate(args) if place not in keys]
        if keys:
            args = [*others, *(() if "--" in others else ("--",)), *(args[place] for place in keys)]
        return super().parse_args(ctx, args)


# binloom's own errors, not typer's, report a file that cannot be read.
class FileOrAddress(TyperPath):
    """A path, or the address of an object such as `s3://bucket/key`, which stays a text."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return a path, or the text of an address."""
        if isinstance(value, str) and "://" in value:
            return value
        return Path(value)


Files = Annotated[
    list[Any],
    typer.Argument(
        metavar="FILE ...",
        click_type=FileOrAddress(),
        help="Binlog files, in the order they were written; also compressed, in tar archives, s3://..., or -.",
    ),
]
FromFiles = Annotated[
    list[Any] | None,
    typer.Option(
        "--files",
        metavar="FILE ...",
        click_type=FileOrAddress(),
        help="Decode these binlog files, not the warehouse; also compressed, in tar archives, s3://..., or -.",
    ),
]
# A pattern of the shell after --files becomes several words, of which an option takes only the first.
MoreFiles = Annotated[
    list[Any] | None, typer.Argument(metavar="[--files FILE ...]", click_type=FileOrAddress(), hidden=True)
]
FromDump = Annotated[
    Any,
    typer.Option(
        "--from-dump",
        metavar="DUMP",
        click_type=FileOrAddress(),
        help="Dump of mysqldump or mariadb-dump, or a folder of mydumper or MySQL Shell; also compressed, in a tar"
        " archive, s3://..., or - for a mysqldump.",
    ),
]
IndexDir = Annotated[
    Path | None,
    typer.Option(
        "--index-dir",
        metavar="DIR",
        readable=False,
        help="Folder that `binloom index --to` wrote; without it, each index is beside its file.",
    ),
]
SnapshotDir = Annotated[
    Path | None,
    typer.Option(
        "--snapshot-dir",
        metavar="DIR",
        readable=False,
        help="Schema snapshot (columns.json ...) with the names that binlog files do not contain.",
    ),
]
Ddl = Annotated[
    Path | None,
    typer.Option(
        "--ddl",
        metavar="FILE",
        readable=False,
        help="CREATE and ALTER statements of the tables in binlog files, such as mysqldump --no-data writes.",
    ),
]
SCHEMA_FROM: Final = "Server that has the definitions of the tables in binlog files."


def _can_be_written(output: Path | None) -> Path | None:
    """Return the path of a file; refuse it before work is done for a file that cannot be written."""
    if output is None:
        return None
    folder = output.parent
    if output.is_dir():
        raise UsageError(f"{output} is a folder.", hint="Give --output the path of a file.")
    if not folder.is_dir():
        raise UsageError(f"{output} cannot be written: there is no folder {folder}.", hint="Create it first.")
    if not os.access(output if output.exists() else folder, os.W_OK):
        raise UsageError(f"{output} is not writable.", hint="Give --output a file that you may write.")
    return output


OutputFile = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", readable=False, help="Write to this file.", callback=_can_be_written
    ),
]
FormatOption = Annotated[Format, typer.Option("--format", help="How rows are printed.", case_sensitive=False)]
Source = Annotated[
    str, typer.Option("--source", "-s", metavar="NAME", help="Name of the source that the changes belong to.")
]
OneSource = Annotated[
    str | None,
    typer.Option(
        "--source", "-s", metavar="NAME", help="Name of the source, if several have the table.", callback=not_empty
    ),
]
TableName = Annotated[str, typer.Argument(metavar="TABLE", help="Table as SCHEMA.TABLE.")]


def _moment(default: str) -> Any:
    help = f"A time (UTC), a GTID, or FILE:POSITION. Default: {default}."
    return Annotated[str | None, typer.Option("--as-of", metavar="MOMENT", help=help)]


StateAsOf = _moment("the end of the log")
HistoryAsOf = _moment("all versions of the row are printed")
Schemas = Annotated[str | None, typer.Option(metavar="A,B", help="Only these schemas (databases).", callback=not_empty)]
Tables = Annotated[
    str | None,
    typer.Option(
        metavar="A.X,Y", help="Only these tables; a name without a schema matches in every schema.", callback=not_empty
    ),
]
ExcludeTables = Annotated[str | None, typer.Option(metavar="A.X,Y", help="Not these tables.", callback=not_empty)]
MasksFile = Annotated[
    Path | None,
    typer.Option(
        "--masks",
        metavar="FILE",
        readable=False,
        help="Columns to mask; default: the file in BINLOOM_MASKS, or masks.yml in the home.",
    ),
]
SkipBadChecksum = Annotated[
    bool, typer.Option("--skip-bad-checksum", help="Skip events with a wrong checksum, and report them.")
]
Port = Annotated[int | None, typer.Option("--port", "-P", metavar="PORT", help="Default 3306.")]
User = Annotated[
    str | None,
    typer.Option(
        "--user",
        "-u",
        metavar="NAME",
        help="Name of the database user; without it, that of --defaults-file or of the system.",
    ),
]
DefaultsFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        readable=False,
        help="Options file (.my.cnf) with user and password; without it, set BINLOOM_PASSWORD or MYSQL_PWD.",
    ),
]
TlsCa = Annotated[
    str | None,
    typer.Option("--tls-ca", "--ssl-ca", metavar="FILE", help="Verify the server's certificate with this authority."),
]
TlsCert = Annotated[
    str | None, typer.Option("--tls-cert", "--ssl-cert", metavar="FILE", help="Certificate of the client.")
]
TlsKey = Annotated[str | None, typer.Option("--tls-key", "--ssl-key", metavar="FILE", help="Key of the client.")]
SslMode = Annotated[
    str | None,
    typer.Option(
        "--ssl-mode",
        "--tls-mode",
        metavar="MODE",
        help="DISABLED, PREFERRED (default), REQUIRED, VERIFY_CA, or VERIFY_IDENTITY (default with --tls-ca).",
    ),
]
EnableCleartextPlugin = Annotated[
    bool, typer.Option("--enable-cleartext-plugin", help="Send the password in clear text if the server asks.")
]
GetServerPublicKey = Annotated[
    bool,
    typer.Option(
        "--get-server-public-key",
        help="Without TLS, encrypt the password with the key that the server sends, unverified.",
    ),
]
ServerPublicKeyPath = Annotated[
    str | None, typer.Option("--server-public-key-path", metavar="FILE", help="The server's RSA key in PEM.")
]
MetricsPort = Annotated[
    int | None, typer.Option(min=0, max=65535, metavar="PORT", help="Serve metrics for Prometheus on this port.")
]
MetricsAddress = Annotated[str, typer.Option(metavar="ADDRESS", help="Address that metrics are served on.")]
