"""The processor that the kernel is compiled for: a baseline that every server has, else the processor of this machine.

Code for the newest features is not faster: see `benchmarks/README.md`. So the code that is compiled and tested in a
clone is the code that a wheel contains.
"""

import platform
import sys
from functools import cache
from pathlib import Path
from typing import Final

# x86-64-v2, and carry-less multiplication for checksums. Servers have both since 2010.
BASELINE: Final = ("x86-64-v2", "+pclmul")
_LINUX_NAMES: Final = ("cx16", "lahf_lm", "pclmulqdq", "pni", "popcnt", "sse4_1", "sse4_2", "ssse3")
_PROCESSOR: Final = Path("/proc/cpuinfo")


@cache
def target() -> tuple[str, str]:
    """Return the name and the features of the processor, in LLVM's words."""
    if fits_baseline():
        return BASELINE
    from llvmlite import binding

    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


@cache
def fits_baseline() -> bool:
    """Return whether code for the baseline runs here."""
    return (sys.platform, platform.machine()) == ("linux", "x86_64") and _features().issuperset(_LINUX_NAMES)


def _features() -> set[str]:
    """Return the features of the first core; Linux lists those that all cores have."""
    try:
        with _PROCESSOR.open() as file:
            flags = next((line for line in file if line.startswith("flags")), "")
    except OSError:
        return set()
    return set(flags.partition(":")[2].split())
