"""Commands in workflows, hooks and pages: do the targets and scripts exist that they name?"""

import re
import shlex
from pathlib import Path
from typing import Final

from tests.support.places import PROJECT

_TARGETS: Final = set(re.findall(r"^([a-z]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
# Programs of a workflow get values in the way of GitHub, which is no syntax of the shell.
_EXPRESSION: Final = re.compile(r"\$\{\{.*?\}\}")


def not_there(commands: str) -> list[str]:
    """Return targets of make, scripts and modules of this repository that commands name and that do not exist."""
    lines = _EXPRESSION.sub("VALUE", commands.replace("\\\n", " ")).splitlines()
    parts = [part for line in lines for part in re.split(r"&&|\|\||[;|]", line)]
    return [name for part in parts for name in _missing(_words(part))]


def code_of(page: Path) -> str:
    """Return the commands of a page of Markdown, one a line: code within the text, and lines of blocks."""
    text = page.read_text()
    blocks = re.findall(r"^```(?:console|sh)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return "\n".join([*re.findall(r"`([^`\n]+)`", text), *(block.replace("$ ", "") for block in blocks)])


def _words(part: str) -> list[str]:
    try:
        words = shlex.split(part, comments=True)
    except ValueError:
        # A quote ends on another line: no such line begins with a command of ours.
        return []
    while words and re.fullmatch(r"\w+=.*", words[0]):
        words = words[1:]
    return words


def _missing(words: list[str]) -> list[str]:
    match words:
        case ["make", *targets]:
            return [name for name in targets if "=" not in name and name[0] != "-" and name not in _TARGETS]
        case ["bash", script, *_] if not script.startswith("-"):
            return [] if (PROJECT / script).is_file() else [script]
        case [program, "-m", module, *_] if "python" in program and module.split(".")[0] in ("tests", "tools"):
            place = PROJECT / module.replace(".", "/")
            return [] if place.with_suffix(".py").is_file() or (place / "__main__.py").is_file() else [module]
    return []
