"""Folders that tests use."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
SAMPLES = PROJECT / "samples"
FIXTURES = PROJECT / "tests" / "fixtures"
