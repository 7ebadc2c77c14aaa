"""Class archive of Spark, for a faster start of the JVM: `python -m ingest.landing.class_archive`.

`make setup` calls it. A session spends most of its start on reading and verifying thousands of classes. When a JVM
ends, it can dump its loaded classes to a file, and the next JVM maps that file (JEP 350, dynamic class data sharing).
A JVM of another version or with other jars ignores the file and starts normally.
"""

import os
import sys
import tempfile
from pathlib import Path

from ingest.errors import BinloomError, StoreError
from ingest.landing.ingest_files import ingest
from ingest.sources.files.directory import find_binlogs
from ingest.warehouse.jvm import CLASS_ARCHIVE
from ingest.warehouse.spark import SparkLaunch

# These queries load most of the classes that dbt's queries need.
_QUERY_WITHOUT_TABLES = """
    select id % 3 as remainder, count(*) as numbers, max(place) as longest
    from (select id, row_number() over (partition by id % 7 order by id) as place from range(100))
    left join (select id, array(id) as ids from range(10)) using (id)
    group by all order by all
"""
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
    """Land a sample, query it, and write the loaded classes to an archive.

    Parameters
    ----------
    sample
        Folder of binlog files.
    archive
        File to write; replaced atomically when it is complete.

    Raises
    ------
    JavaMissingError
        There is no Java.
    StoreError
        Java wrote no file: its own base archive is missing, or there is no space.
    """
    with tempfile.TemporaryDirectory() as folder:
        # In the folder of the archive, so that the last step is only a rename.
        draft = archive.with_suffix(f".{os.getpid()}")
        home = Path(folder)
        try:
            with SparkLaunch(home, short_lived=True, classes_into=draft) as launch:
                # Before the sample, because `make setup` may still be compiling the decoder that the sample needs.
                launch.session().sql(_QUERY_WITHOUT_TABLES).write.saveAsTable("numbers")
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
        # Without the hint: it may refer to a log that was deleted with the temporary home.
        sys.exit(error.message)
