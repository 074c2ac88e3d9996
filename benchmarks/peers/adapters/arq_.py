"""arq.

`WorkerSettings` as in its documentation, with the concurrency of streaq's comparison (`max_jobs`).
It has no processes of its own, so several workers are started; `keep_result=0`: no result is read.
"""

import asyncio

from arq import create_pool
from arq.connections import RedisSettings

from benchmarks.peers import adapter


async def hit(_context):
    await adapter.ahit()


async def record(_context):
    await adapter.arecord()


async def weigh(_context, payload):
    await adapter.aweigh(payload)


async def work(_context, number, seconds):
    await adapter.awork(number, seconds)


class WorkerSettings:
    functions = (hit, record, weigh, work)
    redis_settings = RedisSettings.from_dsn(adapter.URL)
    max_jobs = adapter.CONCURRENCY
    keep_result = 0


async def _enqueue(task, arguments):
    redis = await create_pool(WorkerSettings.redis_settings)

    async def send(*args):
        await redis.enqueue_job(task, *args)

    await adapter.in_chunks(send, arguments)
    await redis.aclose()


def enqueue(task, arguments):
    asyncio.run(_enqueue(task, arguments))


def worker(processes):
    command = adapter.program("arq", f"{__spec__.name}.WorkerSettings")
    return [command] * processes


if __name__ == "__main__":
    adapter.main(enqueue, worker)
