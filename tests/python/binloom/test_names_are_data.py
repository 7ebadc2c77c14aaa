"""A file with harmful names, through the commands that need no Java."""

import csv
import io
import json
from pathlib import Path

import pyarrow.dataset as dataset
import pytest

from ingest.escapes import visible
from ingest.landing.held import SpoolFile, StreamLanding
from ingest.warehouse.home import HOME_VARIABLE, raw_table_dir
from tests.support.nasty import (
    FILE,
    FOLDER,
    INCIDENT,
    LABELS,
    NEXT_FILE,
    SCHEMA,
    SOURCE,
    STATEMENT,
    TABLE,
    VALUE,
    VERSION,
    nasty_file,
    run,
)

FORMATS = ("text", "json", "csv")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the file to a folder with such a name."""
    folder = tmp_path_factory.mktemp("names") / FOLDER
    folder.mkdir()
    nasty_file(folder / (FILE % 1), 1)
    return folder / (FILE % 1)


def test_commands_on_a_file(file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    # The process is the tests' own: a closed pipe must not end it.
    monkeypatch.setattr("binloom.cli.end_with_the_pipe", lambda: None)
    printed = {
        (command, format): run(capsys, *command.split(), str(file), "--format", format, code=code)
        # The incident of the file is an event that cannot be decoded.
        for command, code in (("inspect", 0), ("inspect -v", 0), ("inspect --events -v", 0), ("decode", 3))
        for format in FORMATS
    }
    for name in (SCHEMA, TABLE, *LABELS, VERSION, INCIDENT, NEXT_FILE, str(file)):
        assert visible(name) in printed["inspect -v", "text"], name
    assert visible(STATEMENT) in printed["inspect --events -v", "text"]
    assert json.loads(printed["inspect", "json"])["tables"][0]["columns"][1]["name"] == LABELS[1]
    (change,) = map(json.loads, printed["decode", "json"].splitlines())
    assert (change["schema_name"], change["table_name"], change["column_names"]) == (SCHEMA, TABLE, LABELS)
    assert change["after"] == ["1", VALUE, VALUE]
    (row,) = csv.DictReader(io.StringIO(printed["decode", "csv"], newline=""))
    assert row["schema_name"] == f"'{visible(SCHEMA)}" and row["table_name"] == f"'{visible(TABLE)}"
    assert json.loads(row["after"]) == ["1", VALUE, VALUE]


def test_landing_and_status(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    with StreamLanding(SOURCE, home) as landing:
        landing.open_epoch({"epoch": 0, "server_id": 1, "server_version": VERSION})
        assert landing.land([SpoolFile(file, 0, file.stat().st_size, is_closed=True)]).problems == []
    assert list(tmp_path.iterdir()) == [home]

    def landed(table: str) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = (
            dataset.dataset(raw_table_dir(table, home), partitioning="hive").to_table().to_pylist()
        )
        return rows

    (event,) = landed("row_events")
    place = {"source_id": SOURCE, "binlog_file": file.name, "schema_name": SCHEMA, "table_name": TABLE}
    assert {name: event[name] for name in place} == place
    assert event["after_values"] == ["1", VALUE, VALUE]
    assert STATEMENT in [row["sql_text"] for row in landed("statements")]
    assert [(row["server_version"], row["next_binlog_file"]) for row in landed("binlog_files")] == [
        (VERSION, NEXT_FILE)
    ]
    assert any(INCIDENT in str(row["detail"]) for row in landed("unsupported_events"))

    monkeypatch.setenv(HOME_VARIABLE, str(home))
    for format in FORMATS:
        run(capsys, "status", "--sources", "--format", format)
        run(capsys, "status", "--source", SOURCE, "--format", format)
    (row,) = map(json.loads, run(capsys, "status", "--format", "json").splitlines())
    assert (row["source_id"], row["binlog_file"]) == (SOURCE, file.name)
