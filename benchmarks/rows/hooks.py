"""What one middleware around jobs costs; without any a worker calls the tasks themselves."""

from __future__ import annotations

from benchmarks.lab.bench import Bench
from benchmarks.lab.rounds import interleave, ratios, spread
from benchmarks.rows.drain import drain
from benchmarks.rows.row import Figure, row


@row("hooks", "drain no-op jobs with an empty around_job, 1 process")
def hooks(bench: Bench) -> list[Figure]:
    """Against the same without any."""
    jobs = bench.size.of(1_000, 30_000, 100_000)
    found = interleave(
        bench.rounds,
        {
            "none": lambda: drain(bench, jobs, 1).rate,
            "one": lambda: drain(bench, jobs, 1, app="hooked_tasks").rate,
        },
    )
    more = [1e6 / one - 1e6 / none for one, none in zip(found["one"], found["none"], strict=True)]
    return [
        Figure("of the rate without", ratios(found["one"], found["none"])),
        Figure("more for a job", spread(more), "µs"),
        Figure("without", spread(found["none"]), "jobs/s"),
    ]
