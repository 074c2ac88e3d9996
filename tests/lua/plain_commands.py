"""What a plain queue's scripts send to Redis, in a fixed course of a queue's life.

`python -m tests.lua.plain_commands` writes it down, to `plain_commands.txt`: to be run where the
commands are meant to change. `test_policies.py` compares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import redis

from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, ScriptCall, Window
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.scripts import Scripts
from tests.property.sources import sound
from tests.support.run_script import run

NOTED = Path(__file__).with_suffix(".txt")
KEYS = QueueKeys("plain", "p")
ERROR = b'{"kind":"exception","type":"ValueError"}'
CAUSE = b'{"kind":"crash","type":"Killed"}'


def _put(id: str, **options: Any) -> Put:
    return Put(id, b'["t",[' + id.encode() + b"]]", **options)


def _life() -> Iterator[ScriptCall[Any]]:
    """Everyday steps, fast paths and slow ones, and each outcome."""

    def settle(window: int, *acks: str, **others: Any) -> ScriptCall[Any]:
        rows = len(acks) + sum(len(some) for some in others.values())
        size = 20 * rows
        return commands.settle(
            KEYS, "c", "1", Window(window), ack=acks, freed=size, batch=b"rows", rows=rows, **others
        )

    yield commands.enqueue(KEYS, [_put("a")])
    yield commands.enqueue(KEYS, [_put(id) for id in "bcdefghi"])
    yield commands.enqueue(KEYS, [_put("a"), _put("j")])  # one of them is known
    yield commands.register(KEYS, "c", lease_ms=60_000)
    yield commands.pull(KEYS, "c", "1", Window(1))
    yield settle(1, "a")
    yield settle(1, done=[("b", None, b"1")])
    yield settle(3, "c")
    yield settle(3, "d", "e", "f")
    yield settle(4, "h")  # not in the order of taking
    yield settle(4, retry=[Retried("g", 0, "old", True, ERROR)])
    yield settle(4, retry=[Retried("i", 500, "head", True, ERROR)], reject=[("j", ERROR)])
    yield settle(4, "nobody", release=["g"])
    yield commands.enqueue(
        KEYS, [_put("k", priority=9), _put("l", delay_ms=100), _put("m", max_deliveries=1)]
    )
    yield commands.pull(KEYS, "c", "1", Window(2))
    yield settle(2, retry=[Retried("k", 0, "tail", False, ERROR)])
    yield commands.cancel(KEYS, "m")
    yield commands.promote(KEYS, ["l"])
    yield commands.pull(KEYS, "c", "1", Window(9))
    yield settle(9, "l", "k")
    yield commands.enqueue(KEYS, [_put("n")])  # nothing waits but a consumer
    yield commands.reclaim(KEYS, "c", CAUSE, [])


def sent(client: redis.Redis, lua: Scripts) -> list[str]:
    """The commands, one a line, by the script that sent them."""
    lines = []
    with client.monitor() as monitor:
        for call in _life():
            lines.append(f"{call.script}:")
            try:
                run(client, lua.script(call.script), call.keys, call.args)
            except redis.ResponseError as error:
                lines.append(f"  ! {error}")
            client.echo("done")
            types: list[str] = []
            while "ECHO" not in (seen := monitor.next_command())["command"].upper():
                if seen["client_type"] == "lua":
                    line = "  " + seen["command"].replace(KEYS.base, "")
                    (types if " TYPE " in f" {line} " else lines).append(line)
            lines += sorted(types)
    return [re.sub(r"\{.*\}$", _in_order, line) for line in lines]


def _in_order(found: re.Match[str]) -> str:
    """JSON that a script wrote: versions of Redis order its keys differently."""
    try:
        return json.dumps(json.loads(found[0]), sort_keys=True)
    except ValueError:
        return found[0]


def main() -> None:
    """Write down what the sources send now."""
    with EmbeddedRedis() as server, redis.Redis.from_url(server.url) as client:
        NOTED.write_text("\n".join(sent(client, sound())) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
