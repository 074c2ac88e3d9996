"""The bare loop over rqueue's own settle+pull script: decode, call, collect, and nothing else.

No limits, no retries, no context, no history rows (unless asked for), no signals. Run as a program:
`python -m benchmarks.floors.script_loop URL QUEUE WINDOW HISTORY`; SIGTERM ends it.
"""

from __future__ import annotations

import sys
from typing import Any

import redis
from orjson import loads

from benchmarks.apps import board
from rqueue.model.history_batch import pack
from rqueue.model.job import EPOCH_MS
from rqueue.protocol import commands, scripts
from rqueue.protocol.commands.settle import Window
from rqueue.protocol.consumer_calls import consumer_name
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.connection import Connection

TASKS: dict[str, Any] = {"hit": board.hit}


def main(url: str, queue: str, window: int, history: bool) -> None:
    """Drain the queue until there is nothing, then wait to be woken, for ever."""
    client = redis.Redis.from_url(url)
    connection, keys, name = Connection(client), QueueKeys(queue), consumer_name("floor")
    register = commands.register(keys, name, window=Window(window), lease_ms=600_000)
    term = connection.run(register).term
    connection.run(commands.pull(keys, name, term, Window(0)))
    sha = scripts.script("settle").sha
    connection.command("SCRIPT", "LOAD", scripts.script("settle").source)
    listening = Connection(client, timeout=None)
    meta, guard, wake = keys.meta, keys.guard, keys.wake(name)
    ids: list[bytes] = []
    batch = b""
    while True:
        count = len(ids)
        groups = f"{count},0,0,0,0"
        rows = count if history else 0
        reply = connection.command(
            "EVALSHA", sha, 2, meta, guard, name, term, window, 0, 0, batch, rows, groups, *ids
        )
        ids, values = reply[5::2], reply[6::2]
        for value in values:
            job = loads(value[value.index(b";") + 1 :])
            TASKS[job[0]]()
        if history and ids:
            batch = pack(
                {
                    "id": [id_.decode() for id_ in ids],
                    "task": "hit",
                    "queue": queue,
                    "enqueued": [
                        int(v[v.index(b",") + 1 : v.index(b";")]) + EPOCH_MS for v in values
                    ],
                    "acquired": reply[0],
                    "started": reply[0],
                    "finished": reply[0],
                    "worker": name,
                    "outcome": "ack",
                    "body_size": [len(v) for v in values],
                    "level": 4,
                }
            )
        if not ids and reply[1] == b"interested":
            batch = b""
            listening.command("BLPOP", wake, 60)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1")
