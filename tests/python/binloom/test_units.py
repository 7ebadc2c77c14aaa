"""Durations and sizes in options."""

import pytest

from binloom.commands.units import seconds, size
from ingest.errors import UsageError
from tests.support.command_line import assert_sentence
from tests.support.in_process import binloom_here


@pytest.mark.parametrize(
    ("text", "expected"),
    [("500ms", 0.5), ("30s", 30), ("1.5m", 90), ("2 h", 7200), (" 7d ", 604800), ("0", 0), ("0.0", 0), ("0d", 0)],
)
def test_a_duration_has_a_unit(text: str, expected: float) -> None:
    assert seconds(text, "--every") == expected


@pytest.mark.parametrize("text", ["30", "1", "0.5", " 7 ", "00030"])
def test_a_number_without_a_unit_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="has no unit"):
        seconds(text, "--every")


@pytest.mark.parametrize("text", ["", "d", "-1d", "1w", "1d2h", "inf", "nan", "1e3s"])
def test_other_texts_are_no_duration(text: str) -> None:
    with pytest.raises(UsageError, match="is not a duration"):
        seconds(text, "--every")


@pytest.mark.parametrize(
    "command",
    [
        ("expire", "--source", "shop", "--older-than", "30", "--apply"),
        ("follow", "--source", "shop", "--server", "127.0.0.1", "--spool-max-age", "30"),
        ("follow", "--source", "shop", "--server", "127.0.0.1", "--interval", "30"),
        ("build", "--every", "30"),
    ],
)
def test_no_command_guesses_a_unit(command: tuple[str, ...]) -> None:
    assert_sentence(binloom_here(*command), 2, "'30' has no unit")


def test_a_size_without_a_unit_is_in_bytes() -> None:
    assert [size(text, "--spool-max-size") for text in ("500", "1k", "2GiB")] == [500, 1024, 2 << 30]
