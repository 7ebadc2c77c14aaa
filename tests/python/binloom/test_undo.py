"""`binloom undo` and `redo` on marts that were built before: they need no Java, and refuse what the log cannot show."""

import re
from pathlib import Path

import pytest

from tests.support.command_line import assert_sentence
from tests.support.in_process import binloom_here
from tests.support.older_warehouse import unpack

WITHOUT_JAVA = {"JAVA_HOME": "/nonexistent"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with marts: `landed` is the first file of a shop, `followed` a few boats on MariaDB."""
    return unpack(tmp_path_factory.mktemp("[odd] 'home*"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--table", "shop.order"), ("There is no table", "shop.orders")),
        (("--source", "shops"), ("There is no source", "landed")),
        (("--table", "shop.orders", "--key", "999999"), ("No row change fits", "--key")),
        (("--table", "shop.orders", "--where", "nothing = 1"), ("nothing",)),
        (("--gtid", "nonsense"), ("nonsense",)),
        (("--end-with", "hope", "--source", "landed"), ("cannot end with 'hope'", "rollback")),
        (("--skip-conflicts", "--force", "--source", "landed"), ("contradict each other", "one of them")),
        (("--with-cascades", "--rows-only", "--source", "landed"), ("whole transactions", "--rows-only")),
        (("--source", "landed"), ("an older binloom", "binloom build")),
        ((), ("everal sources", "--source")),
    ],
)
def test_bad_input_is_explained(home: Path, options: tuple[str, ...], words: tuple[str, ...]) -> None:
    result = binloom_here("undo", *options, home=home)
    assert_sentence(result, 2, *map(re.escape, words))
    assert result.stdout == ""
