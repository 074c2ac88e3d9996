"""Drain, stop, recycling: nothing is lost, and what was not begun goes back uncounted."""

import psutil

from rqueue_workers.status_page import DRAIN, DRAINING, LEAVING, STOP
from tests.workers.children import Bench, eventually


def test_an_idle_worker_leaves_at_once(bench: Bench) -> None:
    child = bench.child()
    assert child.leave() == 0
    counts = bench.counts()
    assert counts.interested + counts.notified + counts.not_interested == 0


def test_running_jobs_are_finished_and_unstarted_ones_given_back(bench: Bench) -> None:
    key = f"{bench.name}:k"
    child = bench.child(threads=1, prefetch=5)
    jobs = [bench.send("c.gate", key, i) for i in range(4)]
    assert bench.hear(key) == "0"
    child.ask_to_leave()
    eventually(lambda: child.page.phase == DRAINING, "the drain")
    eventually(lambda: bench.counts().ready == 3, "the give-back")
    bench.go(key)
    assert child.wait() == 0
    assert jobs[0].result(1) == "through"
    assert bench.counts().ready == 3


def test_a_long_job_in_the_main_thread_may_finish(bench: Bench) -> None:
    key = f"{bench.name}:k"
    child = bench.child()
    job = bench.send("c.gate", key)
    bench.hear(key)
    child.ask_to_leave()
    eventually(lambda: child.page.phase == DRAINING, "the drain")
    late = bench.send("c.echo", 1)
    bench.go(key)
    assert child.wait() == 0
    assert job.result(1) == "through"
    assert bench.counts().ready == 1
    assert late.id


def _overdue(bench: Bench, task: str, **options: object) -> None:
    key = f"{bench.name}:k"
    child = bench.child(drain=0.1, **options)
    job = bench.send(task, key)
    bench.hear(key)
    child.ask_to_leave()
    assert child.wait() == 3
    counts = bench.counts()
    assert (counts.ready, counts.held) == (1, 0)
    again = bench.child()
    bench.hear(key)
    bench.go(key)
    assert job.result(10) == "through"
    (row,) = [row for row in bench.history() if row["outcome"] == "ack"]
    assert (row["attempts"], row["deliveries"]) == (0, 1)
    assert again.leave() == 0


def test_past_the_deadline_the_job_in_the_main_thread_goes_back(bench: Bench) -> None:
    _overdue(bench, "c.gate")


def test_past_the_deadline_jobs_in_threads_go_back(bench: Bench) -> None:
    _overdue(bench, "c.gate", threads=2)


def test_past_the_deadline_jobs_on_the_loop_go_back(bench: Bench) -> None:
    _overdue(bench, "c.agate")


def test_a_job_is_told_that_the_worker_is_about_to_stop(bench: Bench) -> None:
    for threads in (0, 1):
        key = f"{bench.name}:k{threads}"
        child = bench.child(threads=threads)
        bench.send("c.watch", key)
        assert bench.hear(key) == "in"
        child.ask_to_leave()
        assert bench.hear(key) == "stopping"
        assert child.wait() == 0


def test_stop_waits_for_nothing(bench: Bench) -> None:
    key = f"{bench.name}:k"
    child = bench.child(drain=60)
    bench.send("c.gate", key)
    bench.hear(key)
    child.page.ask(DRAIN)
    child.ask_to_leave()
    eventually(lambda: child.page.phase == DRAINING, "the drain")
    child.page.ask(STOP)
    child.ask_to_leave()
    assert child.wait() == 3
    assert bench.counts().ready == 1


def test_a_worker_leaves_after_so_many_jobs(bench: Bench) -> None:
    child = bench.child(max_jobs=3, prefetch=1)
    jobs = [bench.send("c.echo", i) for i in range(5)]
    assert child.wait() == 0
    assert child.page.phase == LEAVING
    assert [job.result(1) for job in jobs[:3]] == [0, 1, 2]
    assert bench.counts().ready == 2
    assert "3 jobs" in child.log


def test_a_worker_that_has_grown_leaves(bench: Bench) -> None:
    # it is forked from this process, and begins with all that this one has
    here = psutil.Process().memory_info().rss
    child = bench.child(max_rss=here + 200 * 1024 * 1024)
    bench.result("c.grow", 1)
    assert not child.exited
    bench.send("c.grow", 400)
    assert child.wait() == 0
    assert "MB of memory" in child.log
    bench.settled()
