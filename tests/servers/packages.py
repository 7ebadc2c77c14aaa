"""Unpacks Debian packages into a folder of their own, so that a server runs without being installed.

The packages come from the mirror that the machine's own apt sources name. `mmdebstrap` resolves the
dependencies and unpacks them; nothing of the machine changes, except that `mmdebstrap` itself is
installed when it is missing.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.servers.locking import lock

APT_SOURCES = Path("/etc/apt")
DEBIAN_SUITES = {"bullseye", "bookworm", "trixie", "forky", "sid", "stable", "testing", "unstable", "oldstable"}


class ServerPackagesError(Exception):
    """A server could not be provided; the message says why and what to do."""


def cache_folder() -> Path:
    """Where servers are kept: `$BINLOOM_SERVERS`, else `.servers/` in the project."""
    chosen = os.environ.get("BINLOOM_SERVERS")
    return Path(chosen).absolute() if chosen else Path(__file__).resolve().parents[2] / ".servers"


def debian_mirror() -> str:
    """Return the address of the Debian archive in the machine's apt sources.

    `$BINLOOM_DEBIAN_MIRROR` goes before it. Security and third-party archives are left out: their suites
    are not plain Debian release names.
    """
    chosen = os.environ.get("BINLOOM_DEBIAN_MIRROR")
    if chosen:
        return chosen
    for address, suites in _apt_entries():
        if suites & DEBIAN_SUITES:
            return address
    raise ServerPackagesError(
        f"No Debian archive stands in the apt sources under {APT_SOURCES}. Set BINLOOM_DEBIAN_MIRROR to one."
    )


def _apt_entries() -> Iterator[tuple[str, set[str]]]:
    """Yield the address and the suites of each binary archive in the apt sources, both file formats."""
    for path in [APT_SOURCES / "sources.list", *sorted(APT_SOURCES.glob("sources.list.d/*"))]:
        if not path.is_file():
            continue
        text = path.read_text(errors="replace")
        if path.suffix == ".sources":
            for stanza in re.split(r"\n\s*\n", text):
                fields = dict(re.findall(r"^([A-Za-z-]+):[ \t]*(.*)$", stanza, re.MULTILINE))
                if "deb" in fields.get("Types", "").split() and fields.get("Enabled", "yes") != "no":
                    for address in fields.get("URIs", "").split():
                        yield address, set(fields.get("Suites", "").split())
        elif path.suffix == ".list":
            for match in re.finditer(r"^\s*deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)", text, re.MULTILINE):
                yield match[1], {match[2]}


def _apt_options() -> list[str]:
    """Return the machine's own settings for reaching its mirror: proxies, certificates, clock checks."""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False).stdout
    wanted = re.compile(r"^Acquire::(?:https?::|Check-Valid-Until |Retries )")
    options = [line.rstrip(";") for line in dump.splitlines() if wanted.match(line) and not line.endswith('"";')]
    # A mirror frozen at a date has an expired release file.
    return ['Acquire::Check-Valid-Until "false"', *options]


def unpack(packages: list[str], suite: str, target: Path) -> None:
    """Unpack packages of a Debian suite, with all they depend on, into a folder.

    Does nothing when the folder is already there. It appears in one step, so an interrupted download
    leaves nothing that looks whole.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with lock(target.with_name(f"{target.name}.lock")):
        if target.exists():
            return
        mmdebstrap = _mmdebstrap()
        work = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
        mode = "root" if os.geteuid() == 0 else "auto"
        command = [mmdebstrap, f"--mode={mode}", "--variant=extract", f"--include={','.join(packages)}"]
        command += [f"--aptopt={option}" for option in _apt_options()]
        try:
            done = subprocess.run(
                [*command, suite, str(work / "root"), debian_mirror()],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                tail = "\n".join(done.stderr.splitlines()[-15:])
                raise ServerPackagesError(f"{' '.join(packages)} of Debian {suite} could not be unpacked:\n{tail}")
            (work / "root").rename(target)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _mmdebstrap() -> str:
    """Return the path of mmdebstrap, installing it when it is missing and we may."""
    found = shutil.which("mmdebstrap")
    if found:
        return found
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise ServerPackagesError("mmdebstrap is missing. Install it: apt-get install mmdebstrap")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update", "-q"],
        ["apt-get", "install", "-q", "-y", "--no-install-recommends", "mmdebstrap"],
    ):
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    found = shutil.which("mmdebstrap")
    if not found:
        raise ServerPackagesError(f"mmdebstrap could not be installed:\n{done.stderr[-1500:]}")
    return found
