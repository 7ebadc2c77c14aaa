"""Settings of Spark that a user adds: the file that `$BINLOOM_SPARK_CONF` names.

It has the format of `spark-defaults.conf`. A setting in it replaces binloom's own one, so that a session can use the
metastore, the file system and the resources of a cluster. Java reads the file too, so a password in it is on no command
line.
"""

import os
import re
from pathlib import Path

from ingest.errors import UsageError

CONF_VARIABLE = "BINLOOM_SPARK_CONF"


def settings_file() -> Path | None:
    """Return the file of the user's settings, None if there is none."""
    chosen = os.environ.get(CONF_VARIABLE)
    return Path(chosen).absolute() if chosen else None


def users_settings() -> dict[str, str]:
    """Return the settings in the user's file by name.

    Raises
    ------
    UsageError
        The file cannot be read, or a line is not a setting of Spark.
    """
    path = settings_file()
    if path is None:
        return {}
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise UsageError(
            f"{CONF_VARIABLE} names {path}, which cannot be read: {reason}.",
            hint="Give the path of a file such as spark-defaults.conf, or unset the variable.",
        ) from error
    settings: dict[str, str] = {}
    for number, line in enumerate(map(str.strip, lines), start=1):
        if not line or line[0] in "#!":
            continue
        name, *value = re.split(r"\s*[=:]\s*|\s+", line, maxsplit=1)
        # Java reads a backslash as an escape, or as a line that goes on.
        if not name.startswith("spark.") or not value or not value[0] or "\\" in line:
            raise UsageError(
                f"Line {number} of {path} is not a setting of Spark.",
                hint="Write one setting a line, without backslashes: its name, which begins with `spark.`, a blank, and"
                " its value.",
            )
        settings[name] = value[0]
    return settings
