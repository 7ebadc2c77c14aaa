"""Spark's classes are kept where the JVM can keep them, and nothing needs them."""

from pathlib import Path

import pytest

from ingest.errors import StoreError
from ingest.landing import session
from ingest.landing.class_archive import write_class_archive
from ingest.landing.session import CLASS_ARCHIVE, SparkLaunch
from tests.python.landing.binlogs import SHOP

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def jvm_maps(launch: SparkLaunch, path: Path) -> bool:
    """Whether the JVM of a session has a file in its memory, when it has started."""
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
    monkeypatch.setattr(session, "CLASS_ARCHIVE", other)
    with SparkLaunch(tmp_path / "home", short_lived=True) as launch:
        assert not jvm_maps(launch, other)


def test_a_java_that_cannot_keep_classes_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As a Java without an archive of its own classes.
    monkeypatch.setenv("JDK_JAVA_OPTIONS", f"-XX:SharedArchiveFile={tmp_path}/none")
    archive = tmp_path / "kept.jsa"
    with pytest.raises(StoreError, match=r"did not start: .*base CDS archive"):
        write_class_archive(SHOP, archive)
    assert not list(tmp_path.iterdir())
