"""Connections of a run of dbt."""

from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.spark.session import SessionConnectionWrapper

from binloom.commands import build_settings
from binloom.commands.built_tables import RecordingConnection


@pytest.mark.parametrize(("command", "kind"), [("build", RecordingConnection), ("generate", SessionConnectionWrapper)])
def test_only_a_run_that_writes_tables_records_them(
    command: str, kind: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_settings, "get_flags", lambda: SimpleNamespace(WHICH=command))
    monkeypatch.setattr(build_settings, "open_reconnecting", lambda connection: connection)
    connections = build_settings.RunConnections()
    connections._has_begun = True
    opened: Any = connections.open(SimpleNamespace(handle=SessionConnectionWrapper(None)))  # type: ignore[arg-type]
    assert type(opened.handle) is kind
    assert connections._tables.is_in_this_process == (command == "build")
