"""Compiles an entry point of the kernel: `python -m ingest.binlog.kernel.compiling MODULE NAME ARGUMENTS`.

It prints the symbol, a line end and the object code. numba knows one processor for a whole process, and a program that
reads binlogs may use numba for itself; so this is a process of its own. `environment` names the processor to it.
"""

import importlib
import os
import sys

from ingest.binlog.kernel.processor import target


def environment() -> dict[str, str]:
    """Return the variables of a process that compiles."""
    name, features = target()
    return {**os.environ, "NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features}


def _compile(module: str, name: str, arguments: int) -> tuple[str, bytes]:
    """Return the symbol and the object code, without numba's wrappers for callers in Python."""
    from numba import njit, types

    function = getattr(importlib.import_module(f"ingest.binlog.kernel.{module}"), name).py_func
    signature = types.int64(*[types.int64] * arguments)
    compiled = njit(signature, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function).overloads[signature.args]
    return compiled.fndesc.llvm_func_name, _relocatable(compiled.library.get_llvm_str())


def _relocatable(optimised: str) -> bytes:
    """Return the object code of a module. numba's own has fixed addresses, so no linker makes a library of it."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    name, features = target()
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=name, features=features, opt=3, reloc="pic", codemodel="small"
    )
    return bytes(machine.emit_object(binding.parse_assembly(optimised)))


if __name__ == "__main__":
    symbol, code = _compile(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    sys.stdout.buffer.write(symbol.encode() + b"\n" + code)
