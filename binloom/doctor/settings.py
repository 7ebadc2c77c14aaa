"""Settings of Spark that would change answers, spoil tables, or only cost space."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from binloom.doctor.findings import Finding, Level


@dataclass(frozen=True)
class _Setting:
    """A setting, the values that fit, and what another value does."""

    name: str
    fits: tuple[str, ...]
    level: Level
    effect: str


_SETTINGS: Final = (
    _Setting("spark.sql.session.timeZone", ("UTC", "Etc/UTC", "GMT", "Z"), "error", "hours would be local hours"),
    _Setting("spark.sql.ansi.enabled", ("true",), "error", "a value that does not fit becomes NULL without an error"),
    _Setting("spark.sql.storeAssignmentPolicy", ("ANSI", "STRICT"), "error", "values are cut to fit their columns"),
    _Setting(
        "spark.sql.parquet.outputTimestampType",
        ("TIMESTAMP_MICROS", "INT96"),
        "error",
        "times lose their microseconds",
    ),
    _Setting("spark.sql.parquet.compression.codec", ("zstd",), "advice", "tables are larger"),
    # Hadoop's committers that write to the final folder at once. Spark's dynamic overwrite, with which models replace
    # their parts, needs a commit protocol that moves files from a folder of its own.
    _Setting(
        "spark.sql.sources.commitProtocolClass",
        (
            "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol",
            "org.apache.spark.internal.io.HadoopMapReduceCommitProtocol",
        ),
        "error",
        "a build may add rows to a part instead of replacing them",
    ),
)


def unfit_settings(
    subject: str, setting: Callable[[str], str | None], remedy: Callable[[str, str], str]
) -> Iterator[Finding]:
    """Yield the findings about settings whose values do not fit.

    Parameters
    ----------
    subject
        Subject of the findings.
    setting
        Returns the value of a setting, None if Spark's default is in force and fits.
    remedy
        Returns the sentence that tells what to do, from the name of a setting and a value that fits.
    """
    for one in _SETTINGS:
        found = setting(one.name)
        if found is not None and found.upper() not in (value.upper() for value in one.fits):
            message = f"{one.name} is {found}: {one.effect}."
            yield Finding(subject, one.level, f"{message} {remedy(one.name, one.fits[0])}")
