"""`binloom --install-completion` and `--show-completion`: the TAB key completes commands, options and their values."""

import os
from pathlib import Path
from typing import Final

from typer._completion_classes import completion_init
from typer._completion_shared import _get_shell_name, get_completion_script, install

from binloom.commands.output import print_line
from ingest.errors import UsageError
from ingest.warehouse.privacy import persons_umask

VARIABLE: Final = "_BINLOOM_COMPLETE"
"""A shell sets it to ask which words can follow."""

# typer can also set up PowerShell, but it would change the policy by which scripts of the user may run.
SHELLS: Final = ("bash", "zsh", "fish")
_READ_BY: Final = {"bash": "~/.bashrc", "zsh": "~/.zshrc"}


def answer_shells() -> None:
    """Let the command line answer a shell that asks for words, in the form that its script expects."""
    completion_init()


def print_completion() -> None:
    """Print the script of the user's shell."""
    print(get_completion_script(prog_name="binloom", complete_var=VARIABLE, shell=users_shell()))  # noqa: T201


def install_completion() -> None:
    """Write the script of the user's shell to where the shell reads it."""
    shell = users_shell()
    with persons_umask():
        _, path = install(shell=shell, prog_name="binloom", complete_var=VARIABLE)
    reader = f", which {_READ_BY[shell]} reads" if shell in _READ_BY else ""
    print_line(f"Completion for {shell} is in {path}{reader}. It works in each new shell.")


def users_shell() -> str:
    """Return the shell that $SHELL names; without a usable name, the shell from which binloom was started.

    $SHELL comes first because a user can set it: among the parents of a process there may be shells of scripts.
    """
    named = Path(os.environ.get("SHELL", "")).name
    for name in (named, _get_shell_name()):
        if name in SHELLS:
            return name
    raise UsageError(
        f"Completion works in {', '.join(SHELLS[:-1])} and {SHELLS[-1]}, but SHELL is {named or 'not set'}.",
        hint="Name the shell: SHELL=bash binloom --show-completion.",
    )
