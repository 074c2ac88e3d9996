"""streaq.

The worker object of its documentation with the concurrency of its own comparison, and
`enqueue_many` for bulk, as there; `streaq run --workers`, one process each.
"""

import asyncio

from streaq import Worker

from benchmarks.peers import adapter

worker_ = Worker(redis_url=adapter.URL, concurrency=adapter.CONCURRENCY, queue_name="bench")

TASKS = {
    "hit": worker_.task(name="hit", ttl=0)(adapter.ahit),
    "record": worker_.task(name="record", ttl=0)(adapter.arecord),
    "weigh": worker_.task(name="weigh", ttl=0)(adapter.aweigh),
    "work": worker_.task(name="work", ttl=0)(adapter.awork),
}


async def _enqueue(task, arguments):
    async with worker_:
        for first in range(0, len(arguments), 1000):
            part = arguments[first : first + 1000]
            await worker_.enqueue_many([TASKS[task].enqueue(*args) for args in part])


def enqueue(task, arguments):
    asyncio.run(_enqueue(task, arguments))


def worker(processes):
    command = ["run", f"{__spec__.name}:worker_", "--workers", str(processes)]
    return [adapter.program("streaq", *command)]


if __name__ == "__main__":
    adapter.main(enqueue, worker)
