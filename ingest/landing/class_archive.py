"""Spark's classes, left by one JVM for the next: `python -m ingest.warehouse.class_archive`, which `make setup` calls.

A session spends most of its start on reading and checking thousands of classes. A JVM can write them to a file as they
stand in its memory when it ends, and the next one maps that file (JEP 350, dynamic class data sharing). A JVM that
the file does not fit, because it is of another version or has other jars, leaves it alone and starts as without.
"""

import os
import sys
import tempfile
from pathlib import Path

from ingest.errors import BinloomError, StoreError
from ingest.landing.ingest_files import ingest
from ingest.sources.directory import find_binlogs
from ingest.warehouse.spark import CLASS_ARCHIVE, SparkLaunch

# What is loaded for these is loaded for most of what dbt asks.
_QUERY = """
    select table_name, event_type, count(*) as row_events, max(number) as longest
    from (
        select row_events.*, row_number() over (partition by row_events.gtid order by start_pos) as number
        from binlog_raw.row_events
        left join binlog_raw.segments using (source_id, epoch, binlog_file, segment_start)
    )
    group by all order by all
"""


def write_class_archive(sample: Path, archive: Path = CLASS_ARCHIVE) -> None:
    """Land a sample, ask for it, and keep the classes that it took.

    Parameters
    ----------
    sample
        Folder of binlog files.
    archive
        File to write; replaced at once when it is whole.

    Raises
    ------
    JavaMissingError
        There is no Java.
    StoreError
        Java left no file: it has no archive of its own classes to build on, or no room.
    """
    with tempfile.TemporaryDirectory() as folder:
        # Beside the archive, for the last step to be a change of name.
        draft = archive.with_suffix(f".{os.getpid()}")
        home = Path(folder)
        try:
            with SparkLaunch(home, short_lived=True, classes_into=draft) as launch:
                ingest("sample", find_binlogs(sample), session=launch.session(), home=home)
                launch.session().sql(_QUERY).write.saveAsTable("answer")
            if not draft.exists():
                raise StoreError(f"Java left no classes in {archive.parent}.", hint="Is there room for 300 MB?")
            draft.replace(archive)
        finally:
            draft.unlink(missing_ok=True)


if __name__ == "__main__":
    try:
        write_class_archive(Path(sys.argv[1]))
    except BinloomError as error:
        # The log that a hint may speak of went with the home.
        sys.exit(error.message)
