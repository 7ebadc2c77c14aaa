"""The C function that the kernel calls to decompress transaction payloads without coming back to Python."""

import ctypes
import importlib.util
import weakref
from functools import cache


def zstd_decompression(owner: object) -> tuple[int, int]:
    """Return the addresses of ZSTD_decompressDCtx and of a context for it that lives as long as `owner`.

    Both are 0 when the library cannot be loaded; `ingest.binlog.events.payload` then decompresses through Python, which
    costs some ten microseconds more per payload.
    """
    library = _library()
    if library is None:
        return 0, 0
    context = library.ZSTD_createDCtx()
    weakref.finalize(owner, library.ZSTD_freeDCtx, context)
    return ctypes.cast(library.ZSTD_decompressDCtx, ctypes.c_void_p).value or 0, context or 0


@cache
def _library() -> ctypes.CDLL | None:
    """Load the zstd library inside the package `zstandard`; return None when that fails."""
    found = importlib.util.find_spec("zstandard._cffi")
    if found is None or found.origin is None:
        return None
    try:
        library = ctypes.CDLL(found.origin)
        library.ZSTD_createDCtx.restype = ctypes.c_void_p
        library.ZSTD_freeDCtx.argtypes = [ctypes.c_void_p]
    except (OSError, AttributeError):
        return None
    return library
