"""Spark's classes are archived where the JVM supports it, and everything works without the archive."""

from pathlib import Path

import pytest

from ingest.errors import StoreError
from ingest.landing.class_archive import write_class_archive
from ingest.warehouse import jvm
from ingest.warehouse.jvm import CLASS_ARCHIVE
from ingest.warehouse.spark import SparkLaunch
from tests.support.landing.binlogs import SHOP

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("own_jvm")]


def jvm_maps(launch: SparkLaunch, path: Path) -> bool:
    """Whether the JVM of a session has mapped a file after its start."""
    process_id = launch.context()._jvm.java.lang.ProcessHandle.current().pid()
    return f" {path}\n" in Path(f"/proc/{process_id}/maps").read_text()


def test_a_session_takes_the_classes_that_setup_kept(tmp_path: Path) -> None:
    if not CLASS_ARCHIVE.exists():
        pytest.skip("`make setup` kept no classes: there was no Java then, or one that cannot")
    with SparkLaunch(tmp_path, short_lived=True) as launch:
        assert jvm_maps(launch, CLASS_ARCHIVE)


def test_a_session_starts_beside_classes_that_do_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.jsa"
    other.write_bytes(b"of another version " * 1000)
    monkeypatch.setattr(jvm, "CLASS_ARCHIVE", other)
    with SparkLaunch(tmp_path / "home", short_lived=True) as launch:
        assert not jvm_maps(launch, other)


@pytest.mark.deep
def test_classes_that_could_not_be_written_are_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"Java left no classes in .*none"):
        write_class_archive(SHOP, tmp_path / "none" / "kept.jsa")
    assert not list(tmp_path.iterdir())
