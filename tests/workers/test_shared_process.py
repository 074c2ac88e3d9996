"""What a worker shares with its jobs, and with programs that they start: each has a rule, which is
a row of the table in docs/workers.md."""

import re
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from rqueue.client._sync.queue import Queue
from rqueue.errors import JobCancelled, JobFailed
from tests.support.patience import PATIENCE
from tests.workers.pools import Pool, eventually
from tests.workers.shared_app import SHARED

Make = Callable[..., Pool]
APP = ["tests.workers.shared_app"]
PAGE = Path(__file__).resolve().parents[2] / "docs/workers.md"
ROW = re.compile(r"^\| ([^|]+) \| (stays|is taken away|is its own)", re.M)


def rules() -> dict[str, str]:
    """What becomes of each thing, by the page: stays, or is taken away."""
    _, _, table = PAGE.read_text("utf-8").partition("### What jobs share\n")
    return dict(ROW.findall(table.partition("\n## ")[0]))


def test_everything_has_a_rule() -> None:
    assert set(rules()) == set(SHARED)


def test_what_a_job_changes_stays_or_is_taken_away_as_the_page_says(
    make_pool: Make, queue: Queue
) -> None:
    make_pool(app=APP, max_jobs=2)  # a process for each row
    seen = {}
    for name in SHARED:
        queue.enqueue("s.change", name).result(PATIENCE)
        seen[name] = queue.enqueue("s.see", name).result(PATIENCE)
    assert seen == {name: rule == "stays" for name, rule in rules().items()}


def test_an_async_job_has_context_variables_of_its_own(make_pool: Make, queue: Queue) -> None:
    make_pool(app=APP)
    for name in ("context variables", "decimal context"):
        queue.enqueue("s.achange", name).result(PATIENCE)
        assert not queue.enqueue("s.asee", name).result(PATIENCE)


def test_programs_and_forks_of_a_job_hear_sigint(make_pool: Make, queue: Queue) -> None:
    make_pool(app=APP)
    program, fork = queue.enqueue("s.interrupted").result(PATIENCE)
    assert program == -signal.SIGINT
    assert fork != 0


def struck(queue: Queue, task: str, *arguments: object) -> None:
    with pytest.raises(JobFailed, match="SoftTimeLimit"):
        queue.enqueue(task, *arguments).result(PATIENCE)


@pytest.mark.parametrize("threads", [0, 2])
def test_a_soft_limit_is_swallowed_by_nothing_but_its_name(
    make_pool: Make, queue: Queue, threads: int
) -> None:
    if threads:
        make_pool(app=APP, threads=threads)
        assert queue.enqueue("s.tidy").result(PATIENCE) == "tidied up"
        return
    pool = make_pool(app=APP)
    for kind in ("OSError", "TimeoutError", "Exception"):
        struck(queue, "s.swallow", kind)
    assert queue.enqueue("s.swallow", "SoftTimeLimit").result(PATIENCE) is None, "it struck twice"
    for task in ("s.finalizer", "s.alarms", "s.regex", "s.loop"):
        struck(queue, task)
    assert queue.enqueue("s.tidy").result(PATIENCE) == "tidied up"
    assert pool.drained() == 0
    assert "bug in rqueue" not in pool.log


def test_signals_are_taken_back_from_the_application(
    make_pool: Make, queue: Queue, tmp_path: Path
) -> None:
    pool = make_pool(app=["tests.workers.greedy_app"])
    job = queue.enqueue("g.work", str(tmp_path / "begun"), 1.0)
    eventually((tmp_path / "begun").exists)
    pool.send(signal.SIGTERM)
    assert job.result(PATIENCE) == "done"
    assert pool.ended() == 0
    for name in ("SIGTERM", "SIGINT", "SIGURG"):
        assert f"a handler of {name}, tests.workers.greedy_app.leave" in pool.log
    assert "set_wakeup_fd" in pool.log


def test_a_job_is_interrupted_though_the_application_took_the_signal(
    make_pool: Make, queue: Queue, tmp_path: Path
) -> None:
    pool = make_pool(app=["tests.workers.greedy_app"])
    job = queue.enqueue("g.work", str(tmp_path / "begun"), 600)
    eventually((tmp_path / "begun").exists)
    assert job.cancel(running=True, timeout=PATIENCE) == "ended"
    with pytest.raises(JobCancelled):
        job.result(PATIENCE)
    assert pool.drained() == 0


def test_a_worker_with_many_descriptors(make_pool: Make, queue: Queue) -> None:
    pool = make_pool(app=APP)
    assert queue.enqueue("s.many").result(PATIENCE) > 1024
    (worker,) = psutil.Process(pool.pid).children()
    assert queue.enqueue("s.see", "threads").result(PATIENCE) is False
    assert worker.is_running()
    assert pool.drained() == 0
