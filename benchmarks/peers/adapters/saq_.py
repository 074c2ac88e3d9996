"""SAQ on Redis.

Settings as in its README, with the concurrency of streaq's comparison; `--workers` processes,
`--quiet` as there.
"""

import asyncio

from saq import Queue

from benchmarks.peers import adapter

queue = Queue.from_url(adapter.URL, name="bench")


async def hit(_context):
    await adapter.ahit()


async def record(_context):
    await adapter.arecord()


async def weigh(_context, *, payload):
    await adapter.aweigh(payload)


async def work(_context, *, number, seconds):
    await adapter.awork(number, seconds)


settings = {
    "queue": queue,
    "functions": [hit, record, weigh, work],
    "concurrency": adapter.CONCURRENCY,
}
NAMES = {"hit": (), "record": (), "weigh": ("payload",), "work": ("number", "seconds")}


async def _enqueue(task, arguments):
    await queue.connect()

    async def send(*args):
        await queue.enqueue(task, **dict(zip(NAMES[task], args, strict=True)))

    await adapter.in_chunks(send, arguments)
    await queue.disconnect()


def enqueue(task, arguments):
    asyncio.run(_enqueue(task, arguments))


def worker(processes):
    return [
        adapter.program("saq", f"{__spec__.name}.settings", "--workers", str(processes), "--quiet")
    ]


if __name__ == "__main__":
    adapter.main(enqueue, worker)
