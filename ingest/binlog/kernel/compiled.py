"""The kernel's machine code: numba compiles an entry point once, later processes load its code from a file.

Loading the code needs llvmlite alone. Importing numba, and what it imports, takes longer than decoding a small file.
The file's folder is named by a hash of all that the code depends on: the kernel's source, the versions of numba and
llvmlite, the processor, and whether accesses are checked (see `guard`). So any change compiles everything anew.
"""

import ctypes
import fcntl
import hashlib
import importlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from llvmlite import binding

from ingest.binlog.kernel import guard

EntryPoint = Callable[..., int]

_RETURNED: Final = 0
_engines: Final[list[Any]] = []
"""They own the loaded code."""


@cache
def load(module: str, name: str, arguments: int) -> EntryPoint:
    """Return the compiled function `name` of a module of the kernel, which takes so many int64 and returns one."""
    if guard.IS_ON:
        importlib.import_module("ingest.binlog.kernel.guard_code")
    path = _cache_folder() / f"{module}.{name}"
    stored = _read(path)
    if stored is None:
        with _one_at_a_time(path.parent):
            # Another process may have compiled it in the meantime.
            stored = _read(path)
            if stored is None:
                stored = _compile(module, name, arguments)
                _write(path, *stored)
    return _callable(*stored, arguments)


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
    """Return the symbol and the object code of an entry point, without numba's wrappers for callers in Python."""
    from numba import njit, types

    function = getattr(importlib.import_module(f"ingest.binlog.kernel.{module}"), name).py_func
    signature = types.int64(*[types.int64] * arguments)
    compiled = njit(signature, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function).overloads[signature.args]
    _, _, (code, _) = compiled.library.serialize_using_object_code()
    return compiled.fndesc.llvm_func_name, code


def _callable(symbol: str, code: bytes, arguments: int) -> EntryPoint:
    """Load code into this process.

    numba's functions return a status, and store their result and an exception at the addresses of the first two
    arguments.
    """
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    address = engine.get_function_address(symbol)
    words = [ctypes.c_int64] * arguments
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *words)(address)

    def call(*words: int) -> int:
        result, exception = ctypes.c_int64(), ctypes.c_void_p()
        status = function(ctypes.addressof(result), ctypes.addressof(exception), *words)
        if status != _RETURNED:
            raise RuntimeError(f"{symbol} failed with status {status}")
        return result.value

    return guard.checked(call)


@cache
def _cache_folder() -> Path:
    """Return the first writable of: $BINLOOM_CACHE, `.binloom/cache` of the project, the user's cache."""
    name = Path("kernel") / _key()
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
    digest = hashlib.sha256(f"{version('numba')} {version('llvmlite')} {guard.IS_ON}".encode())
    digest.update(f"{binding.get_process_triple()} {binding.get_host_cpu_name()}".encode())
    digest.update(binding.get_host_cpu_features().flatten().encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
