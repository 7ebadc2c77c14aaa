"""The folder that binloom keeps everything under: `$BINLOOM_HOME`."""

import errno
import os
import shutil
from pathlib import Path

from ingest.errors import StoreError
from ingest.warehouse.built import TableState, recorded
from ingest.warehouse.privacy import close_home
from ingest.warehouse.table_format import check_is_parquet

HOME_VARIABLE = "BINLOOM_HOME"
DEFAULT_HOME = ".binloom"
# Java and Derby report a full disk with this text of the operating system.
NO_SPACE = os.strerror(errno.ENOSPC)
FULL_BELOW_BYTES = 1 << 20

_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {logs}/spark.log
appender.file.filePattern = {logs}/spark.%i.log
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
"""


def binloom_home() -> Path:
    """Return the folder that contains everything binloom keeps, as an absolute path."""
    return Path(os.environ.get(HOME_VARIABLE) or DEFAULT_HOME).absolute()


def warehouse_dir(home: Path | None = None) -> Path:
    """Return the folder that contains the tables, as `<schema>.db/<table>/`."""
    return (home or binloom_home()) / "warehouse"


def raw_table_dir(table: str, home: Path | None = None) -> Path:
    """Return the folder of a table of schema `binlog_raw`."""
    return warehouse_dir(home) / "binlog_raw.db" / table


def has_landed(home: Path) -> bool:
    """Return whether something was landed in a home; no metastore may know it yet."""
    return (warehouse_dir(home) / "binlog_raw.db").is_dir()


def model_dirs(model: str, home: Path | None = None) -> list[Path]:
    """Return the folders of a table that dbt built, in all schemas; not of a build that was cut short or left rows out.

    Raises
    ------
    TableFormatError
        The table is in Iceberg or Delta.
    """
    home = home or binloom_home()
    folders = [path for path in warehouse_dir(home).glob(f"*.db/{model}") if path.is_dir()]
    for folder in folders:
        check_is_parquet(folder)
    return [path for path in folders if not _is_cut_short(path, home)]


def _is_cut_short(folder: Path, home: Path) -> bool:
    return recorded(home, folder.parent.name.removesuffix(".db"), folder.name).state is TableState.CUT_SHORT


def prepare_home(home: Path) -> None:
    """Create the folders and the log configuration that a session needs, and deny other users access to the home.

    Raises
    ------
    StoreError
        When the folder cannot be written to.
    """
    try:
        for folder in ("conf", "locks", "logs", "tmp", "warehouse"):
            (home / folder).mkdir(parents=True, exist_ok=True)
        configuration = home / "conf" / "log4j2.properties"
        text = _LOG4J.format(logs=home / "logs")
        if not configuration.exists() or configuration.read_text() != text:
            configuration.write_text(text)
        close_home(home)
    except OSError as error:
        raise StoreError(
            f"binloom cannot write to its folder {home}: {error.strerror}.",
            hint=f"Free some space or grant permission, or set {HOME_VARIABLE} to a folder that can be written.",
            path=str(home),
        ) from error


def is_full(folder: Path) -> bool:
    """Return whether the disk of a folder is too full for the smallest write of Spark or its metastore."""
    try:
        return shutil.disk_usage(folder).free < FULL_BELOW_BYTES
    except OSError:
        return False


def comes_of_a_full_disk(message: str, home: Path) -> bool:
    """Return whether a full disk caused an error of Spark. Hive hides the cause, so the disk is looked at too."""
    return NO_SPACE in message or is_full(home)
