"""Deploys: old and new code side by side, and pools that get newer code by a rolling restart."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from rqueue import task
from rqueue.tasks.options import Options
from tests.soak.cases import said
from tests.soak.causes import Causes
from tests.soak.evidence import Evidence
from tests.soak.field import CODE
from tests.soak.publisher import Publisher
from tests.soak.records import FOLDER
from tests.soak.scenario import Scenario
from tests.soak.tasks import note

TICK_S = 0.05
"""How exactly the system says when a process began."""


def read_code(records: str | Path, name: str) -> int:
    """The number of the code that is deployed for a pool."""
    path = Path(records).parent / name
    return int(path.read_text()) if path.exists() else 0


VERSION = read_code(os.environ[FOLDER], os.environ[CODE]) if CODE in os.environ else 0


def _born() -> float:
    """When this process began, as `time.monotonic()`."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.monotonic() - age


@task(name="soak.versioned", queue="deploy")
def versioned(publisher: str, number: int) -> None:
    """Note by which code it runs."""
    note("begin", publisher, number, version=VERSION, born=_born())
    note("end", publisher, number)


if VERSION:

    @task(name="soak.new", queue="deploy")
    def new(publisher: str, number: int) -> None:
        """A task that old code does not know."""
        versioned(publisher, number)


def enqueue(publisher: Publisher) -> None:
    """A job that all can run, or one for new code alone."""
    name = publisher.random.choice(("soak.versioned", "soak.new"))
    number = publisher.sent("deploy", task=name)
    queue, its = publisher.queue("deploy"), Options(id=publisher.id(number))
    publisher.attempt([number], lambda: queue.send(name, (publisher.name, number), None, its))


def outdated(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A process that was started after a deploy has the code from before."""
    deployed = evidence.records["deployed"]
    for job in SCENARIO.jobs(evidence):
        for begin in job.begins:
            born, version = begin.facts["born"], begin.facts["version"]
            program = evidence.program(begin.pid)
            due = [
                record["version"]
                for record in deployed
                if record["program"] == program and record["at"] + TICK_S < born
            ]
            yield f"{said(job)}: version {version} in {program} {begin.pid}, not {due[-1:]}" * (
                bool(due) and version < max(due)
            )


def unknown(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """Code that does not know a task ran it, or nobody did."""
    for job in SCENARIO.jobs(evidence):
        if job.facts["task"] == "soak.new" and job.accepted:
            versions = [begin.facts["version"] for begin in job.begins]
            yield f"{said(job)}: run by {versions}" * (not versions or 0 in versions)


SCENARIO = Scenario(
    "deploy",
    {"deploy": {}},
    enqueue,
    {"old code after a deploy": outdated, "a new task and old code": unknown},
    rate=2,
)
