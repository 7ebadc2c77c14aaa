"""Run a command, and turn every error into a message and an exit code."""

import contextlib
import io
import logging
import os
import shlex
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import typer

from binloom.commands.output import say
from ingest.errors import EXIT_DONE, EXIT_SOURCE, EXIT_USAGE, BinloomError, UsageError
from ingest.escapes import visible
from ingest.extras import told_extras
from ingest.warehouse.privacy import keep_private

EXIT_INTERRUPTED = 130
EXIT_PIPE = 141
"""Exit code that a shell shows for a process that SIGPIPE has ended."""

_SILENCE = logging.NullHandler()


def run_app(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code; every error is caught here."""
    keep_private()
    _replace_closed_streams()
    # Users do not see what libraries log. Without a handler, those that call functions of `logging` would add one.
    logging.getLogger().addHandler(_SILENCE)
    for stream in (sys.stdout, sys.stderr):
        # Rows are always UTF-8, but a file name may contain bytes that are not valid UTF-8.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        if _may_make_arrays(arguments):
            _hide_pandas_from_arrow()
        with told_extras():
            code = app(list(arguments), prog_name="binloom", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else EXIT_DONE
    except BinloomError as error:
        _flush()
        say(str(error))
        return error.exit_code
    except typer.TyperException as error:
        return _wrong_usage(error, arguments)
    except SystemExit as ended:
        # Typer ends with 1 when nobody reads the output any more, which is the code for a refusal.
        if isinstance(ended.__context__, BrokenPipeError):
            return EXIT_PIPE
        raise
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except MemoryError:
        say("there is not enough memory for this. Free some, or give fewer files at once.")
        return EXIT_SOURCE
    except OSError as error:
        if error.filename is None and error.errno is None:
            return _bug(error)
        place = f"{error.filename}: " if error.filename is not None else ""
        say(f"{place}{error.strerror or error}. Check that the path exists, may be used, and has space left.")
        return EXIT_SOURCE
    except Exception as error:
        return _bug(error)


def _is_out_of_memory(error: Exception) -> bool:
    """Return whether DuckDB, which only some commands load, had too little memory."""
    duckdb = sys.modules.get("duckdb")
    return duckdb is not None and isinstance(error, duckdb.OutOfMemoryException)


class _ClosedStream(io.TextIOBase):
    """Takes the place of a stream that the caller of binloom has closed; using it is an error."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _refused(self, *_: object) -> Any:
        raise UsageError(f"{self._name} is closed.", hint=f"Give {self._name} a file, a pipe or {os.devnull}.")

    read = readline = write = _refused
    buffer = property(_refused)


def _replace_closed_streams() -> None:
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is not None:
            continue
        # It takes the number of the closed stream, so that no file gets it: libraries write there by the number.
        number = os.open(os.devnull, os.O_RDWR)
        # Nobody reads what is printed on a closed stderr.
        setattr(sys, name, _ClosedStream(name) if name != "stderr" else os.fdopen(number, "w"))


def end_with_the_pipe() -> None:
    """Let `| head` end the process at once and silently, like any other filter."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def _may_make_arrays(arguments: Sequence[str]) -> bool:
    """Return whether a command runs, and is not the one that needs pandas itself."""
    is_command = bool(arguments) and arguments[0] != "quality" and not arguments[0].startswith("-")
    return is_command and not {"--help", "-?"}.intersection(arguments)


def _hide_pandas_from_arrow() -> None:
    """Keep pyarrow from importing pandas at the first list that becomes an array; this takes longer than a command.

    pyarrow wants to know whether the list is an object of pandas. When it does not find pandas, it does not ask
    again, but still imports pandas to convert something to it.
    """
    import pyarrow as pa

    if "pandas" in sys.modules:
        return
    finder = _WithoutPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(finder)


class _WithoutPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def _wrong_usage(error: typer.TyperException, arguments: Sequence[str]) -> int:
    context: Any = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        with contextlib.suppress(UsageError):
            sys.stdout.write(context.get_help() + "\n")
        return EXIT_USAGE
    command = context.command_path if context is not None else "binloom"
    sentence = error.format_message().strip().rstrip(".")
    end = "" if sentence.endswith("?") else "."
    say(f"{sentence[:1].lower()}{sentence[1:]}{end} See: {command} --help")
    return EXIT_USAGE


def _bug(error: Exception) -> int:
    _flush()
    say(unexpected(error))
    return EXIT_SOURCE


def unexpected(error: Exception) -> str:
    """Return the sentence for an error that nobody expected; its traceback is in a file, but for a lack of memory."""
    if _is_out_of_memory(error):
        return f"the rows do not fit into memory: {_first_line(error)}. Ask for fewer: one table, a shorter time."
    trace = "".join(traceback.format_exception(error))
    return (
        f"this is a bug in binloom: {type(error).__name__}: {_first_line(error)}."
        f" The traceback is in {_log(trace)}; please report it with the command."
    )


def _log(trace: str) -> Path:
    """Write a traceback to $BINLOOM_HOME/logs, or to the temporary folder if that fails; return the path."""
    from ingest.warehouse.home import binloom_home

    moment = datetime.now(UTC)
    entry = f"{moment.isoformat(timespec='seconds')} binloom {shlex.join(sys.argv[1:])}\n{trace}"
    for folder in (binloom_home() / "logs", Path(tempfile.gettempdir())):
        path = folder / f"binloom-{moment:%Y%m%d-%H%M%S}-{os.getpid()}.log"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{visible(line)}\n" for line in entry.splitlines()))
        except OSError:
            continue
        return path
    return Path(os.devnull)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0].rstrip(".")


def _flush() -> None:
    """Flush stdout, so that the printed rows come before the final message."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
