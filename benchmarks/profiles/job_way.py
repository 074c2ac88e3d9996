"""The way of one job through rqueue's modules: enqueue, a worker that idles, the result."""

from __future__ import annotations

import importlib.util
import json
import tempfile
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.lab.bench import Bench
from benchmarks.lab.processes import module
from benchmarks.profiles.tracer import Event, between

PARTS = ("enqueue", "worker", "result")
WHAT = {
    "enqueue": "add.enqueue(2, 3)",
    "worker": "the worker, from its wake-up until it waits again",
    "result": "handle.result()",
}
TARGETS = {"modules": 20, "functions": 100, "moves": 50}
"""At most so many, over all three parts."""


@dataclass(frozen=True)
class Way:
    """The functions that one part enters, in order, and how often it sends something to Redis."""

    functions: tuple[tuple[str, str], ...]
    """(module, function)"""

    trips: int

    @property
    def modules(self) -> list[str]:
        """Each module once, in the order of the first visit."""
        return list(dict.fromkeys(module for module, _ in self.functions))

    @property
    def moves(self) -> int:
        """How often a function is entered in another module than the function before."""
        visited = [module for module, _ in self.functions]
        return sum(a != b for a, b in pairwise(visited))

    @staticmethod
    def of(events: list[Event]) -> Way:
        """The way through these events."""
        calls = tuple((e.module, e.function) for e in events if e.kind == "call")
        return Way(calls, sum(e.kind == "send" for e in events))

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "modules": self.modules,
            "functions": [f"{module}:{function}" for module, function in self.functions],
            "moves": self.moves,
            "round_trips": self.trips,
        }


@dataclass(frozen=True)
class Profile:
    """The three parts of a job's way."""

    parts: dict[str, Way]

    @property
    def totals(self) -> dict[str, int]:
        """Over all parts; a module that several parts visit counts once."""
        ways = self.parts.values()
        return {
            "modules": len({module for way in ways for module in way.modules}),
            "functions": sum(len(way.functions) for way in ways),
            "moves": sum(way.moves for way in ways),
            "round_trips": sum(way.trips for way in ways),
            "lines": sum(map(_lines, {module for way in ways for module in way.modules})),
        }

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        parts = {name: way.to_json() for name, way in self.parts.items()}
        return {"parts": parts, "totals": self.totals, "targets": TARGETS}


def _lines(name: str) -> int:
    """Lines of a module's file. Modules of the workers need not be imported for that."""
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None, name
    return len(Path(spec.origin).read_text(encoding="utf-8").splitlines())


def profile(bench: Bench) -> Profile:
    """Trace some jobs, one by one; of each part the way that was seen most often."""
    jobs = bench.size.of(9, 9, 25)  # a busy machine hides the wait between some of them
    bench.empty()
    bench.board()
    with tempfile.TemporaryDirectory() as folder:
        outputs = {name: str(Path(folder, f"{name}.json")) for name in ("worker", "client")}
        works = bench.url, outputs["worker"]
        asks = bench.url, str(jobs), outputs["client"]
        with module("benchmarks.profiles.way_worker", works, bench.board_path) as worker:
            with module("benchmarks.profiles.way_client", asks, bench.board_path) as client:
                code = client.process.wait(120)
                if code:
                    raise RuntimeError(f"the client ended with {code}: {client.said()}")
            worker.check()
            worker.process.terminate()
            worker.process.wait(10)
        worked = [Event(*event) for event in json.loads(Path(outputs["worker"]).read_text())]
        asked = json.loads(Path(outputs["client"]).read_text())
    seen: dict[str, Counter[Way]] = {part: Counter() for part in PARTS}
    for job, after in pairwise(asked[1:]):
        for part in ("enqueue", "result"):
            seen[part][Way.of([Event(*event) for event in job[part]])] += 1
        if way := between(worked, job["begun"], after["begun"]):
            seen["worker"][Way.of(way)] += 1
    return Profile({part: seen[part].most_common(1)[0][0] for part in PARTS})


def show(console: Console, found: Profile, *, functions: bool = False) -> None:
    """Print the counts and the ways. functions: each function that is entered, too."""
    for part, way in found.parts.items():
        console.print(f"[bold]{part}[/]: {WHAT[part]}", highlight=False)
        steps: list[str] = []
        for name, function in way.functions:
            if functions:
                console.print(f"  {_short(name):36} {function}", highlight=False)
            elif not steps or steps[-1] != _short(name):
                steps.append(_short(name))
        if steps:
            console.print("  " + " ▸ ".join(steps), highlight=False)
    table = Table(title="The way of one job", title_justify="left")
    table.add_column("part")
    for name in ("modules", "functions entered", "moves", "round trips"):
        table.add_column(name, justify="right")
    for part, way in found.parts.items():
        counts = len(way.modules), len(way.functions), way.moves, way.trips
        table.add_row(part, *map(str, counts))
    totals = found.totals
    table.add_section()
    names = ("modules", "functions", "moves", "round_trips")
    table.add_row("all", *(str(totals[name]) for name in names))
    table.add_row("aim: at most", *(str(TARGETS.get(name, "")) for name in names))
    console.print(table)
    console.print(f"The modules have {totals['lines']:,} lines.", highlight=False)


def _short(name: str) -> str:
    return name.removeprefix("rqueue.").removeprefix("rqueue_workers.")
