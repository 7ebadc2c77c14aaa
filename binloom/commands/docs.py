"""`binloom docs`: build the lineage site."""

from pathlib import Path

from binloom.commands.output import print_line, progress
from binloom.commands.project import build_site, project_dir
from ingest.errors import EXIT_DONE


def print_site(directory: Path | None) -> int:
    """Build the site in a folder, by default `site/` of the project, and print its path."""
    from ingest.warehouse.catalog import ensure_tables
    from ingest.warehouse.home import binloom_home, warehouse_dir
    from ingest.warehouse.spark import SparkLaunch

    home = binloom_home()
    with progress("drawing the lineage") as advance, SparkLaunch(home, short_lived=True) as launch:
        # The site can be built before anything is landed: it describes tables, not their content.
        ensure_tables(launch.session(), warehouse_dir(home))
        page = build_site((directory or project_dir() / "site").absolute(), home, advance)
    print_line(str(page))
    return EXIT_DONE
