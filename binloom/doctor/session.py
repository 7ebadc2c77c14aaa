"""Checks of what a Spark session would use: the user's settings, the master, and the classes of a metastore."""

import glob
from collections.abc import Iterator
from typing import Final

from binloom.doctor.findings import Finding
from binloom.doctor.settings import unfit_settings
from ingest.errors import BinloomError
from ingest.warehouse.home import binloom_home
from ingest.warehouse.masters import is_local, require_master
from ingest.warehouse.settings_file import settings_file
from ingest.warehouse.spark import spark_settings

_OTHERS: Final = 0o077
_CLASSES: Final = "spark.driver.extraClassPath"


def check_session() -> Iterator[Finding]:
    """Check the settings of a session without starting one. Without settings of the user, there is nothing to check."""
    try:
        settings = spark_settings(binloom_home())
        require_master(settings["spark.master"])
    except BinloomError as error:
        yield Finding.of_error("spark session", error)
        return
    if not is_local(settings["spark.master"]):
        yield Finding("spark session", "good", f"The master at {settings['spark.master']} answers.")
    for path in filter(None, settings.get(_CLASSES, "").split(":")):
        if not glob.glob(path):
            message = f"{_CLASSES} names {path}, which does not exist. Install it, or correct the setting."
            yield Finding("spark session", "error", message)
    yield from _unfit(settings)
    yield from _readers(settings)


def _unfit(settings: dict[str, str]) -> Iterator[Finding]:
    def remedy(name: str, fit: str) -> str:
        return f"Write {fit} in {settings_file()}, or remove the setting."

    yield from unfit_settings("spark session", settings.get, remedy)


def _readers(settings: dict[str, str]) -> Iterator[Finding]:
    """Look who can read the user's file, if it has a password."""
    path = settings_file()
    has_password = any("password" in name.lower() or "secret" in name.lower() for name in settings)
    if path is not None and has_password and path.stat().st_mode & _OTHERS:
        message = f"Other users can read {path}, which has a password. Run `chmod 600 {path}`."
        yield Finding("spark session", "warning", message)
