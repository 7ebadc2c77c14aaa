"""`binloom compact`: merge small segments."""

from binloom.commands.output import print_line, progress
from ingest.errors import EXIT_DONE
from ingest.words import counted


def compact_source(source: str, keep_seconds: float) -> int:
    """Merge the small segments and files of a source; print the result."""
    from ingest.follow.overview import status
    from ingest.landing.compact import compact_closed_files, merge_logs, remove_replaced
    from ingest.landing.held import StreamLanding
    from ingest.warehouse.home import binloom_home

    home = binloom_home()
    status(source, home)  # Raises an error for an unknown source.
    with progress(f"compacting {source}"), StreamLanding(source, home) as landing:
        compacted = compact_closed_files(landing)
        removed = remove_replaced(landing, keep_seconds)
        merged = merge_logs(landing)
        kept = len(landing.record.replaced)
    later = f"; the files of {kept} are kept until later" if kept else ""
    print_line(
        f"{source}: {counted(len(compacted), 'file')} compacted, {counted(removed, 'small segment')} removed{later}, "
        f"{counted(merged, 'file')} of states merged"
    )
    return EXIT_DONE
