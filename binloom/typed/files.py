"""Generated files: each begins with a line that tells of which table it is, and whether a person has edited it."""

import difflib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Final

from binloom.typed.names import TableId
from ingest.errors import StoreError

_NOTE: Final = "Written by `binloom generate`, which never overwrites this file once you have edited it."
_HEAD: Final = re.compile(r"(?:--|#) binloom generate: (\{.*\})")
_COMMENT: Final = {".sql": "--", ".yml": "#"}


class Outcome(StrEnum):
    """How a file compares with the text that is generated now."""

    NEW = "new"
    SAME = "unchanged"
    CHANGED = "changed"
    EDITED = "edited by you, not written"


@dataclass(frozen=True)
class Generated:
    """A file and the text that it gets.

    Attributes
    ----------
    text
        The whole text, with its first lines.
    outcome
        `EDITED` only if the generated text is another than when the file was written.
    former
        Text of the file, empty if it does not exist.
    """

    path: Path
    text: str
    outcome: Outcome
    former: str = ""

    @property
    def diff(self) -> Iterator[str]:
        """Yield the lines of the difference between the file and the generated text."""
        name = str(self.path)
        return difflib.unified_diff(
            self.former.splitlines(), self.text.splitlines(), f"{name} (file)", f"{name} (generated)", lineterm="", n=1
        )

    def write(self) -> bool:
        """Write the file if it is new, or changed and not edited; return whether it was written.

        Raises
        ------
        StoreError
            The file cannot be written.
        """
        if self.outcome not in (Outcome.NEW, Outcome.CHANGED):
            return False
        part = self.path.with_name(f"{self.path.name}.part")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(self.text, encoding="utf-8")
            part.replace(self.path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise StoreError(
                f"The file {self.path} cannot be written: {error.strerror}.",
                hint="Make the folder writable, or give another one with --dir.",
            ) from error
        return True


def compared(path: Path, table: TableId, body: str) -> Generated:
    """Compare a generated text with the file that has it, or will have it."""
    text = _with_head(path, table, body)
    if not path.exists():
        return Generated(path, text, Outcome.NEW)
    former = path.read_text(encoding="utf-8")
    if former == text:
        return Generated(path, text, Outcome.SAME, former)
    head = _head(former)
    checksum = head.get("checksum") if head else None
    if checksum == _checksum(_body(former)):
        return Generated(path, text, Outcome.CHANGED, former)
    return Generated(path, text, Outcome.SAME if checksum == _checksum(body) else Outcome.EDITED, former)


def known_stems(folder: Path) -> dict[TableId, str]:
    """Return the names of the tables that have files in a folder or below it, by their properties."""
    found: dict[TableId, str] = {}
    for path in sorted(folder.rglob("*.yml")):
        if head := _head(path.read_text(encoding="utf-8", errors="replace")):
            found[head["source"], head["schema"], head["table"]] = path.stem
    return found


def _with_head(path: Path, table: TableId, body: str) -> str:
    mark = _COMMENT[path.suffix]
    source, schema, name = table
    facts = {"source": source, "schema": schema, "table": name, "checksum": _checksum(body)}
    # Names could contain the beginning of a block of Jinja.
    inside = re.sub(r"[{}%#]", lambda sign: f"\\u{ord(sign[0]):04x}", json.dumps(facts)[1:-1])
    return f"{mark} binloom generate: {{{inside}}}\n{mark} {_NOTE}\n{body}"


def _head(text: str) -> dict[str, str] | None:
    """Return the facts in the first line of a file; None if it is not one of a generated file."""
    found = _HEAD.fullmatch(text.partition("\n")[0])
    try:
        head = json.loads(found[1]) if found else None
    except ValueError:
        return None
    return head if head is not None and {"source", "schema", "table", "checksum"} <= {*head} else None


def _body(text: str) -> str:
    return text.split("\n", 2)[-1]


def _checksum(body: str) -> str:
    return sha256(body.encode()).hexdigest()[:32]
