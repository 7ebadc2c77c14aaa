"""The compiled decoder. Import `run` and its kin from here, so that the compile cache is set up first.

numba stamps a cached function with the content of its own file only, so the cache folder carries a hash
of all of the kernel's files and of numba's version: a change anywhere compiles anew.
"""

import hashlib
import os
import tempfile
from pathlib import Path

import numba


def _cache_folder() -> Path:
    """The first of these that can be written: $BINLOOM_CACHE, `.binloom/cache` of the project, the user's cache."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    name = Path("kernel") / digest.hexdigest()[:16]
    project = Path(__file__).parents[3]
    roots = [
        Path(os.environ["BINLOOM_CACHE"]) if os.environ.get("BINLOOM_CACHE") else None,
        project / ".binloom" / "cache" if (project / "dbt_project.yml").is_file() else None,
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "binloom",
    ]
    for root in filter(None, roots):
        try:
            (root / name).mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(root / name, os.W_OK):
            return root / name
    return Path(tempfile.gettempdir()) / f"binloom-{os.getuid()}" / name


numba.config.CACHE_DIR = str(_cache_folder())

from ingest.binlog.kernel.packets import unpack, verify  # noqa: E402
from ingest.binlog.kernel.walk import run  # noqa: E402

__all__ = ["run", "unpack", "verify"]
