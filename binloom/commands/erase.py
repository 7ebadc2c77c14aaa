"""`binloom erase`: take the values of a person's rows out of the raw tables."""

import os
import pwd
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from binloom.commands.changed_source import changed_source, delete_leftovers, home_of, whole_log
from binloom.commands.output import print_line, print_table, progress, say
from ingest.errors import EXIT_DONE
from ingest.warehouse.record import SourceRecord
from ingest.words import counted
from recover.retention.erased import Found, find
from recover.retention.needed import assert_built
from recover.sources.log import Log
from recover.timeline.named_table import find_table

if TYPE_CHECKING:
    from ingest.landing.erasure import Erasure
    from ingest.landing.held import StreamLanding


def erase_rows(source: str, table_name: str, keys: Sequence[str], *, apply: bool, reason: str | None = None) -> int:
    """Print where the raw tables have values of some rows; with `apply`, take them out and record the reason."""
    from ingest.landing.erasure import Erasure

    home = home_of(source, "Rows of a cluster's warehouse are not erased with this command.")
    with ExitStack() as stack:
        changed = stack.enter_context(changed_source(source, home, apply=apply))
        record, landing = changed.record, changed.landing
        if landing is not None and (unfinished := Erasure.stored(source, home)) is not None:
            _erase(landing, unfinished, "finishing the erasure that was interrupted")
            say("an earlier erasure was interrupted and is finished now. Run `binloom build`, then this command again.")
            return EXIT_DONE
        spill = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="binloom-erase-")))
        with progress("finding the rows"):
            log = whole_log(home, spill)
            _assert_built(log, record, home)
            found = find(log.connection, find_table(log, table_name, source), keys)
        _print(found)
        if landing is None:
            say("nothing was erased: --apply erases it.")
            return EXIT_DONE
        delete_leftovers(landing)
        found.erasure.erased_by, found.erasure.erasure_reason = _user_name(), reason
        _erase(landing, found.erasure, "erasing")
        say("`binloom build` takes the values out of the marts.")
    return EXIT_DONE


def _assert_built(log: Log, record: SourceRecord, home: Path) -> None:
    from datetime import UTC, datetime

    from ingest.landing.expiry import files_by_age

    files = files_by_age(record, datetime.now(UTC))
    if files:
        assert_built(log.connection, record.source_id, files, home, with_carried=True)


def _user_name() -> str:
    """Return the name of the user of this process, which no variable changes; the number if it has no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _erase(landing: "StreamLanding", erasure: "Erasure", label: str) -> None:
    from ingest.landing.erasure import erase

    with progress(label) as advance:
        erase(landing, erasure, lambda done, total: advance(done, total))


def _print(found: Found) -> None:
    erasure = found.erasure
    rows = [(file.binlog_file, len(file.rows), len(file.transactions)) for file in erasure.files.values()]
    print_line(
        f"{counted(len(found.keys), 'key')} of {erasure.schema_name}.{erasure.table_name} in {erasure.source_id}:"
    )
    print_table(("file", "row events", "transactions with statements"), rows)
    if erasure.baseline_rows:
        print_line(f"and {counted(sum(map(len, erasure.baseline_rows.values())), 'row')} of baselines")
    if found.quarantined:
        print_line(f"{found.quarantined} of these row events are in quarantine")
    for name, changes in found.children:
        say(
            f"{name} refers to these rows in {counted(changes, 'row change')}, which stay:"
            " erase them with their own keys."
        )
    say(
        "the server's binlogs and backups, the follower's spool, copies, exported sites and logs stay as they are:"
        " docs/governance.md."
    )
