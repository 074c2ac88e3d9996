"""Where each microsecond of a job goes on the worker's side."""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import envelope, load
from benchmarks.lab.processes import module
from benchmarks.lab.rounds import Spread, spread
from benchmarks.lab.server import usage
from benchmarks.profiles.worker_program import ORDER

MODES = {"one-by-one": (1, 1), "drain-2": (2, 0)}
"""Processes, and prefetch."""


@dataclass
class Profile:
    """µs for each job. wall, cpu: of a process that measures nothing else. script: in Redis, inside
    the script. steps: of a process that measures them, its own time in each; wall then is what it
    took in all, more than `wall` by what the measuring costs."""

    mode: str
    jobs: int
    wall: Spread
    cpu: Spread
    script: Spread
    timed: Spread
    steps: dict[str, Spread] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "mode": self.mode,
            "jobs": self.jobs,
            "wall": self.wall.to_json(),
            "cpu": self.cpu.to_json(),
            "script": self.script.to_json(),
            "timed": self.timed.to_json(),
            "steps": {name: found.to_json() for name, found in self.steps.items()},
        }


def profile(bench: Bench, mode: str) -> Profile:
    """Drain no-op jobs with and without looking at the steps, in turn."""
    jobs = bench.size.of(300, 10_000, 50_000) * (1 if mode == "one-by-one" else 4)
    plain, timed, scripts = [], [], []
    for _ in range(bench.rounds):
        found, script = _drained(bench, mode, jobs, steps=False)
        plain.append(found)
        scripts.append(script)
        timed.append(_drained(bench, mode, jobs, steps=True)[0])
    return Profile(
        mode,
        jobs,
        spread([_per_job(found, "wall") for found in plain]),
        spread([_per_job(found, "cpu") for found in plain]),
        spread(scripts),
        spread([_per_job(found, "wall") for found in timed]),
        {name: spread([_step(found, name) for found in timed]) for name in ORDER},
    )


Seen = list[dict[str, Any]]


def _per_job(found: Seen, what: str) -> float:
    return float(sum(one[what] for one in found) / sum(one["jobs"] for one in found) / 1000)


def _step(found: Seen, name: str) -> float:
    ns = sum(one["steps"].get(name, (0, 0))[0] for one in found)
    return float(ns / sum(one["jobs"] for one in found) / 1000)


def _drained(bench: Bench, mode: str, jobs: int, *, steps: bool) -> tuple[Seen, float]:
    processes, prefetch = MODES[mode]
    bench.empty()
    board = bench.board()
    with bench.queue() as queue, ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        load(bench.redis, queue.keys, envelope("hit"), jobs)
        before = usage(bench.redis)
        outputs = [Path(folder, f"{number}.json") for number in range(processes)]
        programs = [
            stack.enter_context(
                module(
                    "benchmarks.profiles.worker_program",
                    (bench.url, queue.name, str(prefetch), str(int(steps)), str(output)),
                    bench.board_path,
                )
            )
            for output in outputs
        ]
        bench.watch(programs[0], lambda: board.total() >= jobs, 120, f"{jobs} no-op jobs")
        bench.watch(programs[0], lambda: queue.counts().held == 0, 5, "the last jobs settled")
        bench.watch(
            programs[0], lambda: queue.counts().interested == processes, 5, "workers that wait"
        )
        script = usage(bench.redis).since(before).script_us / jobs
        for program in programs:
            program.process.terminate()
        for program in programs:
            program.process.wait(10)
        found = [json.loads(output.read_text()) for output in outputs]
    if (seen := sum(one["jobs"] for one in found)) != jobs:
        raise RuntimeError(f"{seen} of {jobs} jobs were accounted for")
    return found, script


def show(console: Console, found: Profile) -> None:
    """Print one profile."""
    table = Table(title=f"{found.mode}: µs a job, worker's side", title_justify="left")
    table.add_column("step", overflow="fold")
    table.add_column("median", justify="right", no_wrap=True)
    table.add_column("min – max", justify="right", no_wrap=True)
    rows = {
        **found.steps,
        "all of it, with the measuring": found.timed,
        "all of it, without": found.wall,
        "CPU of the worker": found.cpu,
        "Redis, inside the script": found.script,
    }
    for name, one in rows.items():
        if name == "all of it, with the measuring":
            table.add_section()
        table.add_row(name, f"{one.middle:.2f}", f"{one.low:.2f} – {one.high:.2f}")
    console.print(table)
