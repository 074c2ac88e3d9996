"""The demo of the pipeline, run as people run it; and what it compares in the end."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from rqueue.demo.comparison import Comparison, RowKey, print_comparison
from rqueue.demo.pipeline import wait_until
from rqueue.demo.pool import running_pool
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import RQueueError


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_lake_is_right_though_the_archiver_is_killed(tmp_path: Path) -> None:
    command = ["demo", "--spark", "--modules", "60", "--folder", str(tmp_path / "demo")]
    done = subprocess.run(
        [sys.executable, "-m", "rqueue.cli", *command],
        capture_output=True,
        text=True,
        timeout=590,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "killed the archiver with SIGKILL" in done.stdout
    assert re.search(r"replayed the [1-9]\d* that the storage had failed", done.stdout)
    assert "every row of history is in the lake once, and every job ended once" in done.stdout
    page = (tmp_path / "demo/report.html").read_text()
    assert "demo.squeeze" in page
    assert "StorageAway" in page
    assert page.count("<svg") >= 3


A: RowKey = ("q", "1-0", "a", "retry")
B: RowKey = ("q", "1-0", "a", "ack")
C: RowKey = ("q", "2-0", "c", "dead")


def compare(lake: list[tuple[RowKey, int]], jobs: set[str] | None = None) -> Comparison:
    return Comparison.of([A, B, C], lake, {"a", "c"} if jobs is None else jobs)


def test_a_pool_that_ended_is_reported_with_its_words(
    server: EmbeddedRedis, tmp_path: Path
) -> None:
    with (
        running_pool(server.url, "no.such.app", ["q"], tmp_path / "log") as pool,
        pytest.raises(RQueueError, match=r"(?s)the pool ended with 1: .*no module 'no\.such\.app'"),
    ):
        wait_until(lambda: False, "what never comes", pool)


def test_what_agrees_is_right() -> None:
    found = compare([(A, 0), (B, 1), (C, 0)])
    assert found.problems == []
    assert found.ended(found.lake) == Counter(a=1, c=1)
    assert "every row of history is in the lake once" in printed(found)


@pytest.mark.parametrize(
    ("lake", "jobs", "said"),
    [
        ([(A, 0), (B, 1)], None, ["1 rows of history are not in the lake", "did not end"]),
        (
            [(A, 0), (B, 1), (C, 0), (C, 0)],
            None,
            [
                "1 rows are in the lake more than once",
                "1 jobs ended more than once, by the lake: c",
            ],
        ),
        ([(A, 0), (B, 1), (C, 0), (("q", "3-0", "d", "ack"), 0)], None, ["1 rows of the lake are"]),
        ([(A, 0), (B, 1), (C, 0)], {"a"}, ["1 jobs ended that were not enqueued: c"]),
        ([(A, 0), (B, 1), (C, 0)], {"a", "c", "e"}, ["1 jobs did not end, by the lake: e"]),
        ([], set(), ["there was nothing to compare"]),
    ],
)
def test_what_differs_is_named(
    lake: list[tuple[RowKey, int]], jobs: set[str] | None, said: list[str]
) -> None:
    found = compare(lake, jobs)
    for part in said:
        assert part in "\n".join(found.problems)
    assert "every row" not in printed(found)


def printed(found: Comparison) -> str:
    console = Console(record=True, width=120)
    print_comparison(console, found)
    return console.export_text()
