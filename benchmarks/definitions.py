"""Lands a log of 1,000 tables with 10,000 statements that change them: `python -m benchmarks.definitions --work DIR`.

A MariaDB server logs the statements, and a row of the table behind each: it alters tables faster than MySQL does. It
does so twice more, with half of the tables and statements, and with the same tables and rows but without the
statements. `binloom ingest` lands the three logs in turn in empty homes, and the server's own tool prints the first;
the figures are medians of processor time.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.measure import run
from benchmarks.tool import print_by_tool
from tests.servers import DISTRIBUTIONS

# A table has its first columns again behind the last of them.
ROUND: Final = (
    "add column c int unsigned first",
    "modify column c bigint unsigned after id",
    "rename column c to d, alter column note set default 'none'",
    "add column e enum('new', 'paid', 'sent') after note, drop column d",
    "drop column e, comment 'as before'",
)


@dataclass(frozen=True)
class Log:
    """A log, and the folder that contains nothing else."""

    tables: int
    statements: int
    has_statements: bool = True

    @property
    def name(self) -> str:
        """Name of the folder."""
        return f"definitions-{self.tables}-{self.statements}{'' if self.has_statements else '-rows'}"

    def lines(self) -> Iterator[str]:
        """Yield what the server runs."""
        yield "create database bench character set utf8mb4"
        for table in range(self.tables):
            yield (
                f"create table bench.t{table} (id int unsigned auto_increment primary key, note varchar(40),"
                " kind enum('a', 'b'), total decimal(9,2), added timestamp(3) null)"
            )
        for number in range(self.statements):
            table = f"bench.t{number % self.tables}"
            if self.has_statements:
                yield f"alter table {table} {ROUND[number // self.tables % len(ROUND)]}"
            yield f"insert into {table} (note, kind, total) values ('row {number}', 'b', {number % 1000})"

    def path(self, work: Path) -> Path:
        """Return the file; a server writes it if an earlier run has not."""
        folder = work / self.name
        if not folder.is_dir():
            drafts = work / f"{self.name}.draft"
            shutil.rmtree(drafts, ignore_errors=True)
            drafts.mkdir(parents=True)
            distribution = DISTRIBUTIONS["mariadb"]
            distribution.get()
            with (
                tempfile.TemporaryDirectory(prefix="generate-", dir=work) as server_folder,
                distribution.start(Path(server_folder), ["--max-binlog-size=1G"]) as server,
            ):
                server.flush()
                with server.connect() as connection, connection.cursor() as cursor:
                    for line in self.lines():
                        cursor.execute(line)
                shutil.copyfile(server.flush(), drafts / "binlog.000001")
            drafts.rename(folder)
        return folder / "binlog.000001"


def ingest(path: Path, work: Path) -> float:
    """Land a log in an empty home; return the processor time of the command."""
    with tempfile.TemporaryDirectory(prefix="home-", dir=work) as home:
        words = ["ingest", "--source", "bench", "--binlog-dir", str(path.parent), "--all"]
        return run([sys.executable, "-m", "binloom.cli", *words], environment={"BINLOOM_HOME": home}).processor_seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("/tmp/binloom-bench"))
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--statements", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    whole = Log(given.tables, given.statements)
    half = Log(given.tables // 2, given.statements // 2)
    rows = Log(given.tables, given.statements, has_statements=False)
    paths = {log: log.path(given.work) for log in (whole, half, rows)}
    seconds: dict[Log, list[float]] = {log: [] for log in paths}
    tool = []
    for _ in range(given.rounds):
        for log, path in paths.items():
            seconds[log].append(ingest(path, given.work))
        tool.append(print_by_tool("mariadb", [paths[whole]]).processor_seconds)
    medians = {log: statistics.median(found) for log, found in seconds.items()}
    size = paths[whole].stat().st_size / 1e6
    what = f"{given.tables:,} tables with {given.statements:,} statements and as many rows, {size:.1f} MB"
    print(f"| `binloom ingest` of {what} | {medians[whole]:.2f} s | |")
    times = medians[whole] / medians[half]
    print(f"| half of both | {medians[half]:.2f} s; all of them take {times:.2f} times as long | 2 |")
    added = (medians[whole] - medians[rows]) / given.statements * 1000
    print(f"| the same rows without the statements | {medians[rows]:.2f} s; a statement adds {added:.2f} ms | |")
    print(f"| `mariadb-binlog -v` of the same file | {statistics.median(tool):.2f} s | |")


if __name__ == "__main__":
    main()
