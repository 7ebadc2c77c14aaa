"""The compiled decoder. Import `run` and the other entry points from here, so that the compile cache is set up first.

numba checks a cached function only against its own file. So the name of the cache folder contains a hash of all of the
kernel's files and of numba's version: any change compiles everything anew. The checked build of `guard` has its own
cache folder.
"""

import hashlib
import os
import tempfile
from pathlib import Path

import numba

from ingest.binlog.kernel import guard


def _cache_folder() -> Path:
    """Return the first writable of: $BINLOOM_CACHE, `.binloom/cache` of the project, the user's cache."""
    digest = hashlib.sha256(f"{numba.__version__} {guard.IS_ON}".encode())
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

from ingest.binlog.kernel import packets, strings, walk  # noqa: E402

run = guard.checked(walk.run)
unpack, verify = guard.checked(packets.unpack), guard.checked(packets.verify)
convert_string = guard.checked(strings.convert_string)

__all__ = ["convert_string", "run", "unpack", "verify"]
