"""`binloom docs`: the lineage site."""

from pathlib import Path

from binloom.commands.output import print_line, progress
from binloom.commands.project import build_site, project_dir
from ingest.errors import EXIT_DONE


def print_site(directory: Path | None) -> int:
    """Build the site into a folder, `site/` of the project by default, and print where it is."""
    from ingest.warehouse.catalog import ensure_tables
    from ingest.warehouse.home import binloom_home, warehouse_dir
    from ingest.warehouse.spark import SparkLaunch

    home = binloom_home()
    with progress("drawing the lineage") as advance, SparkLaunch(home, short_lived=True) as launch:
        # The site is there before anything has landed: it describes tables, not what is in them.
        ensure_tables(launch.session(), warehouse_dir(home))
        page = build_site((directory or project_dir() / "site").absolute(), home, advance)
    print_line(str(page))
    return EXIT_DONE
