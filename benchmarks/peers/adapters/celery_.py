"""Celery on Redis.

Prefork pool, one process per slot. Its page "Optimizing" recommends a larger prefetch multiplier
(64 or 128) for many short tasks and to ignore results that are not read; its tips on tasks say the
same of results. Without gossip, mingle and worker heartbeats, which are for clusters with events.
Acknowledged before the run, its default: the losses show that; `BENCH_CELERY_LATE=1` sets what its
FAQ recommends for idempotent tasks, `acks_late` with `reject_on_worker_lost`.
"""

import os

from celery import Celery

from benchmarks.peers import adapter

app = Celery(__spec__.name, broker=adapter.URL)
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=128,
    broker_connection_retry_on_startup=True,
    task_default_queue="bench",
    worker_send_task_events=False,
)
if os.environ.get("BENCH_CELERY_LATE"):
    app.conf.update(task_acks_late=True, task_reject_on_worker_lost=True)

TASKS = {
    "hit": app.task(adapter.hit, name="hit"),
    "record": app.task(adapter.record, name="record"),
    "weigh": app.task(adapter.weigh, name="weigh"),
    "work": app.task(adapter.work, name="work"),
}


def enqueue(task, arguments):
    with app.producer_pool.acquire(block=True) as producer:
        for args in arguments:
            TASKS[task].apply_async(args, producer=producer)


def worker(processes):
    command = ["-A", f"{__spec__.name}:app", "worker", "-P", "prefork", "-c", str(processes)]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "ERROR"]
    return [adapter.program("celery", *command, *quiet)]


if __name__ == "__main__":
    adapter.main(enqueue, worker)
