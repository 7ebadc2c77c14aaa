"""The kernel's machine code: numba compiles an entry point once, later processes load its code from a file.

A wheel may contain the code, see `shipped`. Elsewhere loading it needs llvmlite alone. Importing numba, and what it
imports, takes longer than decoding a small file.
The file's folder is named by a hash of all that the code depends on: the kernel's source, the versions of numba and
llvmlite, the processor that it is for, and whether accesses are checked (see `guard`). So any change compiles
everything anew.
"""

import ctypes
import fcntl
import hashlib
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from ingest.binlog.kernel import compiling, guard, processor
from ingest.binlog.kernel.shipped import shipped_address, source_digest
from ingest.extras import told_extras

EntryPoint = Callable[..., int]

_RETURNED: Final = 0
_ROOT: Final = str(Path(__file__).parents[3])
_engines: Final[list[Any]] = []
"""They own the loaded code."""


@cache
def load(module: str, name: str, arguments: int) -> EntryPoint:
    """Return the compiled function `name` of a module of the kernel, which takes so many int64 and returns one.

    Raises
    ------
    PackagesMissingError
        The code must be compiled here, and there is no numba.
    """
    shipped = shipped_address(module, name)
    if shipped is not None:
        return _callable(shipped, name, arguments)
    with told_extras():
        return _callable(_loaded(*stored(module, name, arguments)), name, arguments)


def stored(module: str, name: str, arguments: int) -> tuple[str, bytes]:
    """Return the symbol and the object code of an entry point; compile it if no process has done so."""
    if guard.IS_ON:
        importlib.import_module("ingest.binlog.kernel.guard_code")
    path = _cache_folder() / f"{module}.{name}"
    found = _read(path)
    if found is None:
        _say_that_it_compiles()
        with _one_at_a_time(path.parent):
            # Another process may have compiled it in the meantime.
            found = _read(path)
            if found is None:
                found = _compile(module, name, arguments)
                _write(path, *found)
    return found


@cache
def _say_that_it_compiles() -> None:
    sys.stderr.write("binloom: compiling the decoder for this machine, once; this takes about a minute.\n")


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Wait while another process compiles code for this folder; do not wait where folders cannot be locked."""
    with ExitStack() as held:
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            held.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def _read(path: Path) -> tuple[str, bytes] | None:
    """Return the symbol and the code in a file; None if there is no such file or it is damaged."""
    try:
        digest, symbol, code = path.read_bytes().split(b"\n", 2)
    except (OSError, ValueError):
        return None
    if digest != _digest(symbol, code):
        return None
    return symbol.decode(), code


def _write(path: Path, symbol: str, code: bytes) -> None:
    """Write a file for `_read`, so that other processes see all of it or nothing."""
    name = symbol.encode()
    # A full disk must not keep a file from being read.
    with suppress(OSError):
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as file:
            file.write(b"\n".join([_digest(name, code), name, code]))
        os.replace(file.name, path)


def _digest(symbol: bytes, code: bytes) -> bytes:
    return hashlib.sha256(symbol + code).hexdigest().encode()


def _compile(module: str, name: str, arguments: int) -> tuple[str, bytes]:
    """Return the symbol and the object code of an entry point."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", compiling.__name__, module, name, str(arguments)],
        env={**compiling.environment(), "PYTHONPATH": os.pathsep.join(filter(None, [_ROOT, *sys.path]))},
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise RuntimeError(f"{module}.{name} could not be compiled: {reason[0]}")
    symbol, code = done.stdout.split(b"\n", 1)
    return symbol.decode(), code


def _loaded(symbol: str, code: bytes) -> int:
    """Load code into this process; return the address of the symbol."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    return int(engine.get_function_address(symbol))


def _callable(address: int, name: str, arguments: int) -> EntryPoint:
    """Return the function at an address.

    numba's functions return a status, and store their result and an exception at the addresses of the first two
    arguments.
    """
    words = [ctypes.c_int64] * arguments
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *words)(address)

    def call(*words: int) -> int:
        result, exception = ctypes.c_int64(), ctypes.c_void_p()
        status = function(ctypes.addressof(result), ctypes.addressof(exception), *words)
        if status != _RETURNED:
            raise RuntimeError(f"{name} failed with status {status}")
        return result.value

    return guard.checked(call)


@cache
def _cache_folder() -> Path:
    """Return the first writable of: $BINLOOM_CACHE, `.binloom/cache` of the project, the user's cache."""
    name = Path("kernel") / _key()
    project = Path(_ROOT)
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
    return _temporary_folder(name)


def _temporary_folder(name: Path) -> Path:
    """Return a folder in the one that everybody can write to, but only if nobody else can put code into it."""
    root = Path(tempfile.gettempdir()) / f"binloom-{os.getuid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    if root.is_symlink() or root.stat().st_uid != os.getuid() or root.stat().st_mode & 0o022:
        root = Path(tempfile.mkdtemp(prefix="binloom-"))
    (root / name).mkdir(parents=True, exist_ok=True)
    return root / name


def _key() -> str:
    from llvmlite import binding

    made_of = (version("numba"), version("llvmlite"), guard.IS_ON, source_digest())
    made_for = (binding.get_process_triple(), *processor.target())
    return hashlib.sha256(repr((made_of, made_for)).encode()).hexdigest()[:16]
