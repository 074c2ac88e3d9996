"""One process, one slot: jobs begin in the order in which they were enqueued, however they came."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rqueue.client._sync.queue import Call, Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.settings import Settings
from tests.support.profiles import examples
from tests.support.proxy import Proxy
from tests.workers.children import WorkerFixture

JOBS = examples(2_500, 10_000)


def publish(queue: Queue, notes: Path) -> None:
    """In singles and batches: the first of an idle while is delivered directly, the rest is
    pulled."""
    sent = 0
    while sent < JOBS:
        for size in (1, 1, 2, 1, 1, 1, 30, *[1] * 50):
            calls = [Call("c.note", [str(notes), sent + i]) for i in range(min(size, JOBS - sent))]
            if len(calls) == 1:
                queue.send("c.note", calls[0].args)
            elif calls:
                queue.enqueue_many(calls)
            sent += len(calls)


def out_of_order(begun: list[int]) -> list[int]:
    """Those that began behind a later one."""
    late, last = [], -1
    for number in begun:
        if number < last:
            late.append(number)
        last = max(last, number)
    return late


@pytest.mark.timeout(300)
@pytest.mark.parametrize("options", [{"async_slots": 0}, {"threads": 1, "async_slots": 0}])
def test_thousands_of_jobs_begin_in_order(
    workers: WorkerFixture, tmp_path: Path, options: dict[str, int]
) -> None:
    """Q-01, X-25."""
    notes = tmp_path / "notes"
    workers.child(**options)
    publish(workers.queue, notes)
    workers.settled()
    begun = [int(line) for line in notes.read_text().split()]
    assert not (late := out_of_order(begun)), f"{len(late)} of {JOBS} began too late: {late[:9]}"
    assert begun == list(range(JOBS))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("options", [{"async_slots": 0}, {"threads": 1, "async_slots": 0}])
def test_lost_connections_change_nothing_of_that(
    workers: WorkerFixture, server: EmbeddedRedis, tmp_path: Path, options: dict[str, int]
) -> None:
    """X-25, H-18: wake-ups and replies are lost on their way, again and again."""
    notes = tmp_path / "notes"
    with Proxy(server.url.removeprefix("unix://")) as proxy:
        workers.child(settings=Settings(url=proxy.url, lease_ms=600_000), **options)
        cuts, ended = random.Random(5), threading.Event()

        def cut() -> None:
            while not ended.wait(cuts.random() / 20):
                if cuts.random() < 0.5:
                    proxy.cut()
                else:
                    proxy.cut_reply(cuts.randrange(400))

        with ThreadPoolExecutor(1) as thread:
            cutting = thread.submit(cut)
            try:
                publish(workers.queue, notes)
            finally:
                ended.set()
            cutting.result()
        workers.settled()
    begun = list(dict.fromkeys(int(line) for line in notes.read_text().split()))
    assert not (late := out_of_order(begun)), f"{len(late)} began too late: {late[:9]}"
    assert sorted(begun) == list(range(JOBS))
