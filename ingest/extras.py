"""Packages that only some commands need, and the extras of binloom that install them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ingest.errors import PackagesMissingError

_MODULES: Final = {
    **dict.fromkeys(("pyspark", "py4j", "dbt", "dbt_common", "great_expectations", "pyhive", "thrift"), "spark"),
    **dict.fromkeys(("numba", "llvmlite"), "compile"),
    **dict.fromkeys(("mcp", "mcp_types", "anyio", "pydantic"), "mcp"),
    **dict.fromkeys(("starlette", "uvicorn"), "ui"),
}
_PURPOSE: Final = {
    "spark": "This command needs Spark, dbt and Great Expectations",
    "compile": "The decoder has to be compiled for this machine",
    "mcp": "This command needs the SDK of the Model Context Protocol",
    "ui": "The pages need Starlette and uvicorn",
}


@contextmanager
def told_extras() -> Iterator[None]:
    """Turn an import that fails into an error which names the extra with the module.

    Raises
    ------
    PackagesMissingError
        A module of an extra is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in _MODULES:
            raise
        extra = _MODULES[module]
        raise PackagesMissingError(
            f"{_PURPOSE[extra]}, and {module} is not installed.", hint=installs(extra), module=module
        ) from error


def installs(extra: str) -> str:
    """Return the sentence that tells how an extra is installed."""
    return (
        f"Run `pip install 'binloom[{extra}]'`, or `pipx install --force 'binloom[{extra}]'` if pipx installed binloom"
        " (in a clone: `make setup`)."
    )
