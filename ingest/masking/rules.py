"""The file `masks.yml`: which columns are masked, and how."""

import difflib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ingest.errors import UsageError
from ingest.masking.methods import METHODS, Mask

FILE_NAME: Final = "masks.yml"
FILE_VARIABLE: Final = "BINLOOM_MASKS"
KEY_VARIABLE: Final = "BINLOOM_MASK_KEY"
SHORTEST_KEY: Final = 16
"""Bytes that a key has at least."""

_SECTIONS: Final = ("key_variable", "key_file", "tags", "rules")
_TAG_SETTINGS: Final = ("method", "keep_first", "keep_last")
_RULE_SETTINGS: Final = ("columns", "tag", "source")
_DEFAULT_LAST: Final = 4


@dataclass(frozen=True, slots=True)
class MaskedColumn:
    """A column of a table that is masked: its 0-based place in the row images, its name and its mask."""

    ordinal: int
    name: str
    mask: Mask


def record_of(columns: Sequence[MaskedColumn], key: bytes | None) -> list[dict[str, Any]]:
    """Return masked columns as `table_maps` and `baselines` record them."""
    return [
        {
            "ordinal": one.ordinal,
            "column_name": one.name,
            "tag": one.mask.tag,
            "method": one.mask.method,
            "fingerprint": one.mask.fingerprint(key),
        }
        for one in columns
    ]


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Patterns of names, in which `*` is any text and `?` any character. Names compare without case."""

    source: re.Pattern[str]
    schema: re.Pattern[str]
    table: re.Pattern[str]
    column: re.Pattern[str]


@dataclass(frozen=True)
class Masks:
    """The rules that concern one source, in the order of the file. The first rule that matches a column counts.

    Picklable, because tasks of Spark need it. The key is never printed.
    """

    rules: tuple[tuple[_Pattern, Mask], ...]
    key: bytes | None = field(default=None, repr=False)

    def concerns(self, schema: str, table: str) -> bool:
        """Return whether a rule may match a column of a table."""
        return any(
            rule.schema.fullmatch(schema) is not None and rule.table.fullmatch(table) is not None
            for rule, _ in self.rules
        )

    def columns_of(self, schema: str, table: str, names: Sequence[str]) -> tuple[MaskedColumn, ...]:
        """Return the masked columns of a table with columns of these names."""
        of_table = [
            (rule.column, mask)
            for rule, mask in self.rules
            if rule.schema.fullmatch(schema) is not None and rule.table.fullmatch(table) is not None
        ]
        found = []
        for ordinal, name in enumerate(names):
            mask = next((mask for column, mask in of_table if column.fullmatch(name) is not None), None)
            if mask is not None:
                found.append(MaskedColumn(ordinal, name, mask))
        return tuple(found)


def masks_file(given: Path | None, home: Path) -> Path | None:
    """Return the file with the masks: the given one, that of the variable, or that of the home; None without any."""
    if given is not None:
        return given
    if named := os.environ.get(FILE_VARIABLE):
        return Path(named)
    own = home / FILE_NAME
    return own if own.exists() else None


def read_masks(path: Path, home: Path, source_id: str) -> Masks | None:
    """Return the masks of a source; None if no rule concerns it.

    Raises
    ------
    UsageError
        The file cannot be read or has a mistake, or the key of a hash is missing, too short, or in the home.
    """
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"The masks in {path} cannot be read: {reason}.", hint="Nothing was landed.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise UsageError(f"{path} is not YAML{where}.", hint="See docs/masking.md for an example.") from None
    masks = _File(path, {} if content is None else content).masks(source_id)
    if not masks:
        return None
    key = None
    if any(mask.method == "hash" for _, mask in masks):
        key = _key(path, home, content)
    return Masks(tuple(masks), key)


class _File:
    """The content of `masks.yml`. Each mistake is an error that names its place."""

    def __init__(self, path: Path, content: Any) -> None:
        self._path = path
        self._content = self._settings(content, "the file", _SECTIONS)

    def masks(self, source_id: str) -> list[tuple[_Pattern, Mask]]:
        """Return the rules that concern a source. All rules are checked, also those of other sources."""
        tags = self._tags()
        rules = self._content.get("rules")
        if not isinstance(rules, list):
            raise self._error("rules is not a list")
        found = []
        for number, rule in enumerate(rules, 1):
            place = f"rule {number}"
            settings = self._settings(rule, place, _RULE_SETTINGS)
            tag = self._tag(settings.get("tag"), tags, place)
            source = settings.get("source", "*")
            if not isinstance(source, str) or not source:
                raise self._error(f"source of {place} is not the name of a source")
            found += [(pattern, tag) for pattern in self._patterns(settings.get("columns"), source, place)]
        return [(pattern, mask) for pattern, mask in found if pattern.source.fullmatch(source_id)]

    def _tags(self) -> dict[str, Mask]:
        tags = self._content.get("tags")
        if not isinstance(tags, dict) or not tags:
            raise self._error("tags is not a list of names with their methods")
        return {str(name): self._mask(str(name), settings) for name, settings in tags.items()}

    def _mask(self, tag: str, settings: Any) -> Mask:
        # YAML reads an unquoted null as no value.
        if settings is None or isinstance(settings, str):
            settings = {"method": settings}
        place = f"tag {tag}"
        settings = self._settings(settings, place, _TAG_SETTINGS)
        given = "null" if "method" in settings and settings["method"] is None else settings.get("method")
        method = next((one for one in METHODS if one == given), None)
        if method is None:
            near = difflib.get_close_matches(str(given), METHODS, n=1)
            raise self._error(f"{place} has the unknown method {given}", near or METHODS)
        counts = {name: settings[name] for name in ("keep_first", "keep_last") if name in settings}
        if counts and method != "partial":
            raise self._error(f"{place} has {' and '.join(counts)}, which only the method partial uses")
        for name, count in counts.items():
            if type(count) is not int or count < 0:
                raise self._error(f"{name} of {place} is not a number of characters")
        if method == "partial" and not counts:
            counts = {"keep_last": _DEFAULT_LAST}
        return Mask(tag, method, counts.get("keep_first", 0), counts.get("keep_last", 0))

    def _tag(self, tag: Any, tags: Mapping[str, Mask], place: str) -> Mask:
        if str(tag) not in tags:
            near = difflib.get_close_matches(str(tag), tags, n=1)
            known = near or sorted(tags)
            raise self._error(f"{place} has no tag" if tag is None else f"{place} has the unknown tag {tag}", known)
        return tags[str(tag)]

    def _patterns(self, columns: Any, source: str, place: str) -> Iterable[_Pattern]:
        listed = [columns] if isinstance(columns, str) else columns
        if not isinstance(listed, list) or not listed or not all(isinstance(one, str) for one in listed):
            raise self._error(f"columns of {place} is neither SCHEMA.TABLE.COLUMN nor a list of such texts")
        for text in listed:
            parts = text.split(".")
            if len(parts) != 3 or not all(parts):
                raise self._error(f"{text!r} in {place} is not SCHEMA.TABLE.COLUMN")
            yield _Pattern(_glob(source, re.NOFLAG), *(_glob(part, re.IGNORECASE) for part in parts))

    def _settings(self, given: Any, place: str, known: Sequence[str]) -> dict[str, Any]:
        if not isinstance(given, dict):
            raise self._error(f"{place} does not have settings such as {known[-1]}")
        for name in given:
            if name not in known:
                near = difflib.get_close_matches(str(name), known, n=1)
                raise self._error(f"{place} has the unknown setting {name}", near or known)
        return given

    def _error(self, finding: str, known: Iterable[str] = ()) -> UsageError:
        names = ", ".join(known)
        remedy = f"There is {names}." if names else "See docs/masking.md for an example."
        return UsageError(f"{self._path}: {finding}.", hint=f"{remedy} Nothing was landed.", path=str(self._path))


def _glob(text: str, flags: re.RegexFlag) -> re.Pattern[str]:
    parts = (".*" if part == "*" else "." if part == "?" else re.escape(part) for part in re.split(r"([*?])", text))
    return re.compile("".join(parts), flags | re.DOTALL)


def _key(path: Path, home: Path, content: Mapping[str, Any]) -> bytes:
    """Return the key of the hashes, from a variable or from a file outside of the home."""
    if "key_file" in content and "key_variable" in content:
        raise UsageError(f"{path} has both key_file and key_variable.", hint="Leave one of them out.")
    if "key_file" in content:
        file = (path.parent / str(content["key_file"])).resolve()
        if file.is_relative_to(home.resolve()):
            raise UsageError(
                f"The key of the masks is in the home: {file}.",
                hint="Move it to another folder: whoever reads the tables must not be able to read the key.",
            )
        try:
            key = file.read_bytes().strip()
        except OSError as error:
            raise UsageError(
                f"The key of the masks cannot be read: {file}: {error.strerror}.",
                hint=f"Set key_file in {path} to the file with the key. Nothing was landed.",
            ) from None
        where = str(file)
    else:
        where = str(content.get("key_variable") or KEY_VARIABLE)
        key = os.environb.get(where.encode(), b"").strip()
        if not key:
            raise UsageError(
                f"{path} has columns with the method hash, but the variable {where} with their key is empty.",
                hint=f"Set {where}, or name a file outside of the home by key_file. Nothing was landed.",
            )
    if len(key) < SHORTEST_KEY:
        raise UsageError(
            f"The key of the masks in {where} has only {len(key)} bytes: hashes of such a key can be guessed.",
            hint=f"Use at least {SHORTEST_KEY} bytes, such as those of `openssl rand -hex 32`.",
        )
    return key
