"""taskiq with taskiq-redis.

`RedisStreamBroker`, the one that its README recommends, as it acknowledges messages. Async tasks;
`--max-async-tasks` and `--max-prefetch` as in streaq's comparison. No result backend: no result is
read."""

import asyncio

from taskiq_redis import RedisStreamBroker

from benchmarks.peers import adapter

broker = RedisStreamBroker(adapter.URL)

TASKS = {
    "hit": broker.task(task_name="hit")(adapter.ahit),
    "record": broker.task(task_name="record")(adapter.arecord),
    "weigh": broker.task(task_name="weigh")(adapter.aweigh),
    "work": broker.task(task_name="work")(adapter.awork),
}


async def _enqueue(task, arguments):
    await broker.startup()
    await adapter.in_chunks(TASKS[task].kiq, arguments)
    await broker.shutdown()


def enqueue(task, arguments):
    asyncio.run(_enqueue(task, arguments))


def worker(processes):
    some = str(adapter.CONCURRENCY)
    command = ["worker", f"{__spec__.name}:broker", "--workers", str(processes)]
    limits = ["--max-async-tasks", some, "--max-prefetch", some, "--log-level", "WARNING"]
    return [adapter.program("taskiq", *command, *limits)]


if __name__ == "__main__":
    adapter.main(enqueue, worker)
