"""`binloom doctor`: check the machine, the home, the cluster and a server before anything runs."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from binloom.commands.output import Format, print_line, print_rows, waiting
from binloom.doctor.findings import Finding
from ingest.errors import EXIT_CHECK_FAILED, EXIT_DONE
from ingest.words import counted

if TYPE_CHECKING:
    from binloom.doctor.findings import Level
    from ingest.sources.servers.address import ServerAddress

COLUMNS = ("subject", "level", "message")


def print_findings(address: "ServerAddress | None", format: Format) -> int:
    """Print all findings, and in a text their number.

    Returns
    -------
    int
        1 when a finding is an error.
    """
    with waiting("checking"):
        findings = list(_findings(address))
    print_rows(COLUMNS, [(one.subject, one.level, one.message) for one in findings], format)
    levels = Counter(one.level for one in findings)
    if format is Format.TEXT:
        print_line()
        print_line(_conclusion(levels))
    return EXIT_CHECK_FAILED if levels["error"] else EXIT_DONE


def _findings(address: "ServerAddress | None") -> Iterator[Finding]:
    from binloom.doctor.home import check_home
    from binloom.doctor.machine import check_machine, spark_packages
    from binloom.doctor.masks import check_masks

    yield from check_machine()
    packages = spark_packages()
    yield packages
    if packages.level == "good":
        yield from _findings_of_spark()
    yield from check_home()
    yield from check_masks()
    if address is not None:
        from binloom.doctor.server import check_source

        yield from check_source(address)


def _findings_of_spark() -> Iterator[Finding]:
    from binloom.doctor.executors import check_executors
    from binloom.doctor.machine import check_java
    from binloom.doctor.session import check_session
    from recover.sources.cluster.thrift import is_cluster_target

    yield from check_java()
    of_session = list(check_session())
    yield from of_session
    if all(one.level != "error" for one in of_session):
        yield from check_executors()
    if is_cluster_target():
        from binloom.doctor.cluster import check_cluster

        yield from check_cluster()


def _conclusion(levels: "Counter[Level]") -> str:
    if not levels["error"] + levels["warning"]:
        return "Commands will run."
    numbers = f"{counted(levels['error'], 'error')} and {counted(levels['warning'], 'warning')}"
    return f"{numbers}. {'Fix the errors first.' if levels['error'] else 'Commands will run.'}"
