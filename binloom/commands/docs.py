"""`binloom docs`: build the lineage site."""

import contextlib
from pathlib import Path

from binloom.commands.build_places import build_place
from binloom.commands.output import print_line, progress
from binloom.commands.project import build_site, site_dir, using_project
from ingest.errors import EXIT_DONE
from recover.sources.cluster.thrift import is_cluster_target


def print_site(directory: Path | None) -> int:
    """Build the site in a folder, by default `site/`, and print its path.

    In a project that uses binloom as a package, the site has the models of this project, too.
    """
    from ingest.warehouse.catalog import ensure_tables
    from ingest.warehouse.home import binloom_home, warehouse_dir
    from ingest.warehouse.spark import SparkLaunch

    home = binloom_home()
    with contextlib.ExitStack() as stack:
        advance = stack.enter_context(progress("drawing the lineage"))
        if is_cluster_target():
            place = build_place(home, stack)
            place.open()
            place.prepare()
        else:
            launch = stack.enter_context(SparkLaunch(home, short_lived=True))
            # The site can be built before anything is landed: it describes tables, not their content.
            ensure_tables(launch.session(), warehouse_dir(home))
        page = build_site((directory or site_dir()).absolute(), home, advance, project=using_project())
    print_line(str(page))
    return EXIT_DONE
