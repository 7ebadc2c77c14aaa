"""The words of an address: filters and options, in the names that the commands have for them."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Final
from urllib.parse import urlencode

from binloom.filter_options import option_of
from ingest.errors import UsageError
from recover.selection.filters import Filters

FILTERS: Final = {option_of(one.name).removeprefix("--"): one for one in fields(Filters)}
"""The fields of filters by their words in an address."""
_NUMBERS: Final = ("thread", "from-pos", "to-pos")


class Words:
    """The words of one address. A word without a value is not set, as in a form that is not filled in.

    Parameters
    ----------
    pairs
        Words and values, in their order.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._pairs = [(word, value) for word, value in pairs if value.strip()]

    def assert_known(self, known: Iterable[str]) -> None:
        """Refuse other words: a filter that is not understood would select too much."""
        names = [*known]
        for word, _ in self._pairs:
            if word not in names:
                raise UsageError(f"This page has no {word!r}.", hint=f"Its words are {', '.join(names)}.")

    def several(self, word: str) -> list[str]:
        """Return all values of a word."""
        return [value for one, value in self._pairs if one == word]

    def one(self, word: str) -> str | None:
        """Return the value of a word; None if it is not set."""
        values = self.several(word)
        if len(values) > 1:
            raise UsageError(f"{word!r} has {len(values)} values.", hint="Give it one.")
        return values[0] if values else None

    def needed(self, word: str) -> str:
        """Return the value of a word without which there is no page."""
        value = self.one(word)
        if value is None:
            raise UsageError(f"{word!r} is missing.", hint="Fill in the field, or follow a link of another page.")
        return value

    def has(self, word: str) -> bool:
        """Return whether a word is set."""
        return bool(self.several(word))

    @property
    def given(self) -> set[str]:
        """The words that are set."""
        return {word for word, _ in self._pairs}

    def number(self, word: str, default: int) -> int:
        """Return a positive number."""
        value = self.one(word)
        found = default if value is None else _number(word, value)
        if found < 1:
            raise UsageError(f"{word!r} is {found}.", hint="Give 1 or more.")
        return found

    def filters(self) -> Filters:
        """Return the filters among the words."""
        given: dict[str, Any] = {}
        for word, field in FILTERS.items():
            if not self.has(word):
                continue
            if field.default == ():
                texts = self.several(word)
                given[field.name] = [_number(word, text) for text in texts] if word in _NUMBERS else texts
            else:
                text = self.needed(word)
                given[field.name] = _number(word, text) if word in _NUMBERS else text
        return Filters.of(**given)

    def selecting(self) -> dict[str, list[str]]:
        """Return the words that filter, for links to other pages with the same selection."""
        return {word: self.several(word) for word in FILTERS if self.has(word)}

    def address(self, path: str, **changed: str | int | None) -> str:
        """Return an address with the same words, except for some; None leaves a word out. `_` stands for `-`."""
        other = {word.replace("_", "-"): value for word, value in changed.items()}
        kept = [(word, value) for word, value in self._pairs if word not in other]
        return joined(path, [*kept, *((word, str(value)) for word, value in other.items() if value is not None)])


def address(path: str, words: Mapping[str, object] | None = None, **more: object) -> str:
    """Return an address with words; a list has several values, None has none. `_` stands for `-`."""
    named = {**(words or {}), **{word.replace("_", "-"): value for word, value in more.items()}}
    pairs = [
        (word, str(value))
        for word, given in named.items()
        for value in (given if isinstance(given, list) else [given])
        if value is not None
    ]
    return joined(path, pairs)


def joined(path: str, pairs: list[tuple[str, str]]) -> str:
    """Return an address of words and values."""
    # Names of a log may have halves of surrogate pairs, which no address can have.
    return f"{path}?{urlencode(pairs, errors='replace')}" if pairs else path


def _number(word: str, text: str) -> int:
    if not text.strip().isascii() or not text.strip().isdigit():
        raise UsageError(f"{word!r} is {text!r}, which is no number.", hint="Give digits only.")
    return int(text)
