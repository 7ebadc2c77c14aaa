"""Each cell of `docs/formats.md` matches the program's behaviour."""

from dataclasses import replace
from pathlib import Path

import pytest

from ingest.binlog.events.types import EVENT_NAMES
from tests.support.binlog.format_programs import COLUMN_PROGRAMS, EVENT_PROGRAMS
from tests.support.binlog.format_specimens import COLUMNS, EVENTS, ColumnSpecimen, EventSpecimen
from tools import format_page

PROGRAMS = [pytest.param("mysqlbinlog", marks=pytest.mark.mysql), "mysql-replication", "binloom"]
EVENT_CELLS, COLUMN_CELLS = format_page.written()


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("specimen", EVENTS, ids=lambda specimen: specimen.name)
def test_a_cell_of_an_event_type(specimen: EventSpecimen, program: str, tmp_path: Path) -> None:
    word = EVENT_PROGRAMS[program](specimen, specimen.file(tmp_path))
    assert EVENT_CELLS[specimen.name][program] == word


@pytest.mark.parametrize("specimen", [each for each in EVENTS if each.hints], ids=lambda specimen: specimen.name)
def test_what_a_snapshot_tells_is_only_named_without_one(specimen: EventSpecimen, tmp_path: Path) -> None:
    assert EVENT_PROGRAMS["binloom"](replace(specimen, hints=None), specimen.file(tmp_path)) == "named"
    assert format_page.EVENT_NOTES[specimen.name]["binloom"] == format_page.WITH_A_SNAPSHOT


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("specimen", COLUMNS, ids=lambda specimen: specimen.name)
def test_a_cell_of_a_column_type(specimen: ColumnSpecimen, program: str, tmp_path: Path) -> None:
    word = COLUMN_PROGRAMS[program](specimen, specimen.file(tmp_path))
    assert COLUMN_CELLS[specimen.name][program] == word


def test_the_page_has_every_type_and_nothing_without_a_specimen() -> None:
    assert list(EVENT_CELLS) == [specimen.name for specimen in EVENTS]
    assert set(EVENT_CELLS) == set(EVENT_NAMES.values()) - {"UNKNOWN"}
    assert list(COLUMN_CELLS) == [specimen.name for specimen in COLUMNS]


@pytest.mark.mysql
def test_the_page_names_the_versions_that_were_asked() -> None:
    heading = next(line for line in format_page.PAGE.read_text().splitlines() if line.startswith("| event type"))
    assert [cell.strip() for cell in heading.strip("| ").split("|")[1:]] == format_page.headings()
