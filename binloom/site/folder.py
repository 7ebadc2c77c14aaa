"""The folder of the site: its page, dbt's own page, and the files that both are made from."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ingest.escapes import json_in_script

# The page that dbt generates can load a tracker from this address. It does so only if the project allows it, and
# binloom's project does not. The address is removed anyway.
_TRACKER: Final = "//d1fc8wv8zag5ca.cloudfront.net/2.9.0/sp.js"
_ARTIFACTS: Final = ("manifest.json", "catalog.json")
# `make docs` writes it before the site.
_GUIDE: Final = "guide/index.html"


def write_site(site: Path, home: Path, target: Path) -> Path:
    """Write the site to a folder, which is created, and return its page.

    Parameters
    ----------
    home
        Folder of all data of binloom.
    target
        Folder of the results of `dbt docs generate --static`: that of the home, or of a project that uses binloom.

    Raises
    ------
    OSError
        A file cannot be read or written.
    """
    from binloom.site.artifacts import Artifacts
    from binloom.site.exports import to_dot, to_openlineage
    from binloom.site.facts import read_facts
    from binloom.site.lineage import read_lineage
    from binloom.site.page import index_page

    lineage = read_lineage(target)
    guide = _GUIDE if (site / _GUIDE).exists() else None
    page = index_page(lineage, read_facts(home, target), datetime.now(UTC), guide, Artifacts(target).overview())
    site.mkdir(parents=True, exist_ok=True)
    for artifact in _ARTIFACTS:
        shutil.copyfile(target / artifact, site / artifact)
    _write(site / "lineage.json", json.dumps(to_openlineage(lineage), indent=1))
    _write(site / "lineage.dot", to_dot(lineage))
    _write(site / "dbt.html", _dbt_page(target))
    _write(site / "index.html", page)
    return site / "index.html"


def _dbt_page(target: Path) -> str:
    """Return dbt's page without its tracker, and with its data such that no name ends the script."""
    page = (target / "static_index.html").read_text("utf-8")
    for artifact in _ARTIFACTS:
        document = (target / artifact).read_text("utf-8")
        page = page.replace(document, json_in_script(document))
    return page.replace(_TRACKER, "data:text/javascript,")


def _write(file: Path, text: str) -> None:
    """Replace a file at once, so that a browser never reads half of it."""
    draft = file.with_name(f".{file.name}")
    draft.write_text(text, "utf-8")
    draft.replace(file)
