"""Lands binlogs, builds the models and checks them, as a job of Dagster.

    dagster dev -f pipeline.py

Each step is a command of binloom. Nothing of binloom is imported, so Dagster may have a Python environment of its own.
"""

import os
import subprocess

from dagster import (
    Definitions,
    Failure,
    In,
    Nothing,
    OpExecutionContext,
    Out,
    RetryRequested,
    ScheduleDefinition,
    job,
    op,
)

SOURCE_FAILED = 3


def run(context: OpExecutionContext, *command: str) -> None:
    """Run a command; the log of the step has its lines, and the step fails if the command does."""
    context.log.info("$ %s", " ".join(command))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip())
        context.log.info(lines[-1])
    code = process.wait()
    if code == SOURCE_FAILED and context.retry_number < 2:
        # The server or the store may be back soon, and the command goes on where it ended.
        raise RetryRequested(max_retries=2, seconds_to_wait=60)
    if code != 0:
        raise Failure("\n".join(lines[-5:]) or f"exit code {code}", metadata={"exit code": code}, allow_retries=False)


@op(out=Out(Nothing))
def ingest(context: OpExecutionContext) -> None:
    """Land the binlog files that are new, or that have grown."""
    source, folder = os.environ["BINLOOM_SOURCE"], os.environ["BINLOOM_BINLOG_DIR"]
    run(context, "binloom", "ingest", "--source", source, "--binlog-dir", folder, "--all")


@op(ins={"landed": In(Nothing)}, out=Out(Nothing))
def build(context: OpExecutionContext) -> None:
    """Build the models if something has landed."""
    run(context, "binloom", "build")


@op(ins={"built": In(Nothing)}, out=Out(Nothing))
def quality(context: OpExecutionContext) -> None:
    """Check the raw tables and the proofs; the step fails if one of them found something."""
    run(context, "binloom", "quality")


# One process at a time can open the embedded metastore, so the steps run in one after the other.
@job(tags={"binloom": "home"})
def refresh() -> None:
    """Bring the tables up to date."""
    quality(build(ingest()))


definitions = Definitions(jobs=[refresh], schedules=[ScheduleDefinition(job=refresh, cron_schedule="*/10 * * * *")])
