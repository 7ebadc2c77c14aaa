"""The pages of documentation: their links, and the places where the program and the project name them."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from typer.main import get_command

from binloom.cli import app
from tests.support.places import PROJECT

PAGES = sorted(
    path.relative_to(PROJECT)
    for pattern in ("*.md", "docs/**/*.md", "benchmarks/*.md", "samples/*.md", "tests/**/*.md")
    for path in PROJECT.glob(pattern)
)
NAMING = sorted(
    path.relative_to(PROJECT)
    for folder in (
        "binloom",
        "ingest",
        "recover",
        "dbt_plugin",
        "models",
        "macros",
        "seeds",
        "tests",
        "tools",
        "samples",
    )
    for path in (PROJECT / folder).rglob("*")
    if path.suffix in {".py", ".sql", ".yml", ".md", ".csv", ".html", ".js"} and "fixtures" not in path.parts
) + [
    path.relative_to(PROJECT) for path in (*PROJECT.glob("*.yml"), *PROJECT.glob("*.toml"), *PROJECT.glob("docs/*.md"))
]

_FENCE = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[(?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*\]\(([^)\s]+)\)|<img[^>]* src=\"([^\"]+)\"")
_DBT_LINK = re.compile(r"#!/(?:model|seed)/(?:model|seed)\.binloom\.(\w+)")
_NAMED = re.compile(r"(?<![\w/.])(docs/[\w/-]+\.md)(#[\w-]+)?")


def test_there_are_pages() -> None:
    assert {Path("README.md"), Path("docs/incident.md"), Path("benchmarks/README.md")} <= {*PAGES}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    assert [link for link in _links(page) if not _leads_somewhere(page, link)] == []


def test_pages_that_are_named_exist() -> None:
    wrong = []
    for path in NAMING:
        for name, anchor in _NAMED.findall((PROJECT / path).read_text()):
            target = PROJECT / name
            if not target.exists() or (anchor and anchor[1:] not in _anchors(target)):
                wrong.append(f"{path}: {name}{anchor}")
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_commands_have_the_options_that_pages_give_them(page: Path) -> None:
    options = _options()
    wrong = []
    for words in _commands((PROJECT / page).read_text()):
        known = options.get(words[0])
        # dbt gets the options that `binloom build` does not have.
        given = [] if words[0] == "build" else [word.split("=")[0] for word in words if re.match(r"--[a-z]", word)]
        if known is None or not known.issuperset(given):
            wrong.append(" ".join(words))
    assert wrong == []


def test_links_and_commands_are_found_in_a_page() -> None:
    assert [*_links_of("[a](x.md#b) `[c](d)`\n```\n[e](f)\n```\n[![g](h)](i) ![j](k)")] == ["x.md#b", "i", "k"]
    page = 'Run `binloom undo --files x`, or:\n```console\n$ binloom sql "\n  select 1" | cat\noutput\n```'
    assert [*_commands(page)] == [["sql", "\n  select 1"], ["undo", "--files", "x"]]


def _leads_somewhere(page: Path, link: str) -> bool:
    if link.startswith(("https://", "http://", "mailto:")):
        return True
    if dbt := _DBT_LINK.fullmatch(link):
        # Only dbt's site follows them, and it shows only blocks of `docs`.
        found = [*PROJECT.glob(f"models/**/{dbt[1]}.sql"), *PROJECT.glob(f"seeds/{dbt[1]}.csv")]
        return "{% docs" in (PROJECT / page).read_text() and len(found) == 1
    name, _, anchor = link.partition("#")
    target = (PROJECT / page.parent / name) if name else PROJECT / page
    return target.exists() and (not anchor or anchor in _anchors(target))


def _links(page: Path) -> Iterator[str]:
    yield from _links_of((PROJECT / page).read_text())


def _links_of(text: str) -> Iterator[str]:
    text = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", _FENCE.sub("", text))
    for found in _LINK.finditer(text):
        yield found[1] or found[2]


@cache
def _anchors(page: Path) -> frozenset[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ +(.+?) *$", _FENCE.sub("", page.read_text()), re.MULTILINE)
    found: list[str] = []
    for heading in headings:
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")
        found.append(slug if slug not in found else f"{slug}-{found.count(slug)}")
    return frozenset(found)


def _commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each `binloom COMMAND ...` in a page, after `binloom`."""
    blocks = [block for _, block in re.findall(r"^( *)```console\n(.*?)^\1```", text, re.MULTILINE | re.DOTALL)]
    typed = [command for block in blocks for command in re.split(r"^ *\$ ", block, flags=re.MULTILINE)[1:]]
    named = re.findall(r"(?<!`)`(binloom [a-z][^`]*)`", _FENCE.sub("", text))
    for command in (*typed, *named):
        # The output of a command follows in the next lines, unless a quote or a backslash carries it on.
        for end in [at for at, sign in enumerate(command) if sign == "\n"] + [len(command)]:
            try:
                words = shlex.split(command[:end].replace("\\\n", " "), comments=True)
            except ValueError:
                continue
            if not command[:end].endswith("\\"):
                break
        while words and re.match(r"[A-Z_]+=", words[0]):
            words = words[1:]
        if words and words[0].endswith("binloom") and len(words) > 1 and re.fullmatch(r"[a-z]+", words[1]):
            stop = next((at for at, word in enumerate(words) if word in {"|", ">", "&", "&&", ";"}), len(words))
            yield words[1:stop]


@cache
def _options() -> dict[str, frozenset[str]]:
    group = get_command(app)
    return {
        name: frozenset(
            {
                "--help",
                *(one for parameter in command.params for one in parameter.opts),
                *(one for parameter in command.params for one in parameter.secondary_opts),
            }
        )
        for name, command in group.commands.items()  # type: ignore[attr-defined]
    }
