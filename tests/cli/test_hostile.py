"""Every command over a queue full of texts that take over a terminal: none reaches it raw.

Such ids and names cannot be enqueued by a client of ours; here they stand in Redis all the same, as
written by another program.
"""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import redis
from click.testing import Result

from rqueue.cli import cli
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.model.history_batch import pack
from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.protocol.keys import QueueKeys
from rqueue.settings import Settings
from rqueue.transport.redis_client import execute
from tests.cli.test_shape import LEAVES
from tests.support.command_line import runner
from tests.support.hostile import HOSTILE, STORABLE, false_lines, steers

NAMESPACE = "hostile"
BODY = orjson.dumps(
    [
        STORABLE,
        [STORABLE],
        {STORABLE: STORABLE},
        {"labels": {STORABLE: STORABLE}, "headers": {STORABLE: STORABLE}},
    ]
)
ERROR = {
    "kind": STORABLE, "type": STORABLE, "message": STORABLE, "worker": STORABLE, "attempt": 1,
    "traceback": f"Traceback\n{STORABLE}\n",
}  # fmt: skip


@pytest.fixture
def keys(client: redis.Redis) -> Iterator[QueueKeys]:
    """A queue with a job in every state, all with the worst texts that Redis can hold."""
    keys = QueueKeys(HOSTILE, NAMESPACE)
    queue = Queue("plain", redis=client, settings=Settings(namespace=NAMESPACE))
    queue.name, queue.keys = HOSTILE, keys
    names = ["done", "dead", "failed", "held", "ready", "ready2", "gone"]
    queue.enqueue_puts([Put(f"{STORABLE}-{name}", BODY) for name in names])
    queue.enqueue_puts([Put(f"{STORABLE}-later", BODY, delay_ms=10**7)])
    consumer = queue.consumer(jobs=4, renew=False)
    # the script itself refuses C0 in these
    consumer._state.name, consumer._state.worker = "c\x9b1m\u202e", "w\x9b1m\u202e"
    consumer.register()
    done, dead, failed, _held = consumer.pull()
    columns: dict[str, Any] = {
        "id": [done.id, failed.id, dead.id], "task": STORABLE, "queue": HOSTILE, "level": 4,
        "worker": STORABLE, "outcome": ["ack", "retry", "dead"], "error": STORABLE,
        "enqueued": 1, "acquired": 2, "started": 3, "finished": 4, "body_size": 5,
    }  # fmt: skip
    consumer.settle(
        done=[(done, {STORABLE: STORABLE})],
        retry=[commands.Retried(failed.id.encode(), 10**7, "park", False, orjson.dumps(ERROR))],
        reject=[(dead, ERROR)],
        batch=pack(columns),
        rows=3,
    )
    execute(client, commands.cancel(keys, f"{STORABLE}-gone", held=True))
    client.hset(keys.meta, HOSTILE, HOSTILE)
    yield keys
    client.unlink(*client.scan_iter(match=f"{NAMESPACE}:*"))
    consumer.close()
    queue.close()


LOOK: list[list[str]] = [
    ["queues"],
    ["queues", HOSTILE],
    *(["jobs", HOSTILE, "--state", state] for state in (
        "ready", "scheduled", "parked", "held", "dead", "ended", "done", "cancelled", "purged"
    )),
    *(["show", f"{HOSTILE}-{name}"] for name in ("x",)),
    ["consumers", HOSTILE],
    ["history", HOSTILE],
    ["stats", HOSTILE, "--interval", "10ms"],
    ["dead", "list", HOSTILE],
    ["doctor"],
    ["doctor", HOSTILE],
    ["configure", HOSTILE],
    ["pause", HOSTILE],
    ["resume", HOSTILE],
    ["cancel", HOSTILE, f"{HOSTILE}-x", "--yes"],
    ["result", f"{HOSTILE}-x", "-q", HOSTILE, "--timeout", "0"],
    ["watch", f"{HOSTILE}-x", "-q", HOSTILE, "--timeout", "0"],
    ["log", f"{HOSTILE}-x", "-q", HOSTILE],
    ["enqueue", HOSTILE, "-q", HOSTILE],
    ["enqueue", "app.t", HOSTILE, "--id", HOSTILE],
    ["dead", "requeue", HOSTILE, "--dry-run"],
    ["dead", "requeue", HOSTILE, "--yes"],
    ["dead", "purge", HOSTILE, "--yes"],
    ["purge", HOSTILE, "--dry-run"],
    ["promote", HOSTILE, HOSTILE],
    ["promote", HOSTILE, "--all", "--task", HOSTILE],
    ["prioritize", HOSTILE, HOSTILE, "--front"],
    ["browse", HOSTILE],
    ["cron", "add", HOSTILE, HOSTILE, "app.t", "--every", "5m"],
    ["cron", "list", HOSTILE],
    ["limits", "list", HOSTILE],
    ["limits", "set", HOSTILE, HOSTILE, "3", "--key", HOSTILE],
    ["limits", "reset", HOSTILE, HOSTILE],
    ["shares", "list", HOSTILE],
    ["shares", "set", HOSTILE, HOSTILE, "3"],
    ["shares", "reset", HOSTILE, HOSTILE],
    ["shards", "create", HOSTILE, "2"],
    *(["shards", verb, HOSTILE] for verb in ("list", "open", "advance")),
    ["shards", "drain", HOSTILE, "0"],
    ["shards", "forget", HOSTILE, "0", "--yes"],
    *(
        ["cron", verb, HOSTILE, HOSTILE]
        for verb in ("show", "edit", "pause", "resume", "reset", "run-now", "remove")
    ),
    ["unique", HOSTILE, HOSTILE],
    ["groups", HOSTILE, HOSTILE, "--reset"],
    ["alerts", HOSTILE],
    ["copy", HOSTILE, "app", "--all"],
    ["move", HOSTILE, "app", HOSTILE],
    ["expire", HOSTILE, "--task", HOSTILE, "--yes"],
    ["reject", HOSTILE, "--task", HOSTILE, "--reason", HOSTILE],
    ["purge", HOSTILE, "--held", "--yes"],
    ["delete", HOSTILE, "--dry-run"],
    ["delete", HOSTILE, "--yes"],
]  # fmt: skip
ELSEWHERE = {
    ("worker",): "tests/workers/test_hostile.py",
    ("dev",): "prints nothing of a queue",
    ("demo",): "queues of its own",
    ("bench",): "queues of its own",
    **{
        ("pipeline", name): "needs Spark"
        for name in ("archive", "load", "plan", "replay", "report")
    },
}


def test_no_command_is_left_out() -> None:
    swept = {tuple(part for part in args[:2] if part != HOSTILE) for args in LOOK}
    swept |= {args[:1] for args in swept}
    assert {path for path in LEAVES if path not in swept} == set(ELSEWHERE)


def run(server: EmbeddedRedis, args: list[str]) -> tuple[str, str]:
    whole = ["--url", server.url, "--namespace", NAMESPACE, *args]
    result: Result = runner().invoke(cli, whole, prog_name="rqueue")
    assert result.exit_code in (0, 1, 2, 3, 5), (args, result.output, result.exc_info)
    return result.stdout, result.stderr


def ids(keys: QueueKeys) -> list[str]:
    return [f"{HOSTILE}-{name}" for name in ("done", "dead", "ready")]


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("args", LOOK, ids=lambda args: " ".join(args).replace(HOSTILE, "QUEUE"))
def test_commands_print_no_control_character(server: EmbeddedRedis, args: list[str]) -> None:
    for printed in run(server, args):
        assert steers(printed) == []
        assert false_lines(printed) == []


@pytest.mark.usefixtures("keys")
def test_json_holds_the_very_texts_and_no_control_character(server: EmbeddedRedis) -> None:
    said, _ = run(server, ["queues", "--json"])
    assert steers(said) == []
    assert [info["name"] for info in json.loads(said)] == [HOSTILE]
    said, _ = run(server, ["jobs", HOSTILE, "--json"])
    assert steers(said) == []
    (first, _) = json.loads(said)["jobs"]
    assert (first["id"], first["args"]) == (f"{STORABLE}-ready", [STORABLE])
    for line in run(server, ["history", HOSTILE, "--json"])[0].splitlines():
        assert steers(line) == []
        assert json.loads(line)["id"].startswith(STORABLE)


def test_one_job_is_shown_harmlessly(
    server: EmbeddedRedis, client: redis.Redis, keys: QueueKeys
) -> None:
    """`show` finds its job by an id that holds no NUL: a command line cannot."""
    for name in ("done", "dead", "ready"):
        value = client.hget(keys.jobs, f"{STORABLE}-{name}")
        if value is not None:
            client.hset(keys.jobs, f"{HOSTILE}-{name}", value)
    client.zadd(keys.dead, {f"{HOSTILE}-dead": 5})
    client.hset(keys.causes, f"{HOSTILE}-dead", orjson.dumps(ERROR))
    client.hset(keys.errors, f"{HOSTILE}-dead", orjson.dumps(ERROR))
    for name in ("dead", "ready"):
        said, _ = run(server, ["show", f"{HOSTILE}-{name}", "-q", HOSTILE])
        assert "a\\x1b[31m" in said
        assert steers(said) == []


def test_a_terminal_gets_nothing_but_our_own_colours(
    server: EmbeddedRedis, keys: QueueKeys, tmp_path: Path
) -> None:
    """On a true terminal, where tables are drawn by another library."""
    for args in (["queues"], ["jobs", keys.queue, "-s", "dead"], ["history", keys.queue]):
        above, below = pty.openpty()
        where = ["--url", server.url, "--namespace", NAMESPACE]
        with subprocess.Popen(
            [sys.executable, "-m", "rqueue.cli", *where, *args],
            stdout=below, stderr=below, stdin=below, cwd=tmp_path,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "250"},
        ) as command:  # fmt: skip
            os.close(below)
            said = b""
            while True:
                try:
                    more = os.read(above, 65536)
                except OSError:  # the other end is closed
                    break
                said += more
            assert command.wait(30) == 0, said
        os.close(above)
        assert b"\x1b]" not in said and b"\x1b[2J" not in said and b"\x07" not in said
        assert b"\xc2\x9b" not in said and "\u202e".encode() not in said
        assert b"\\x1b[31m" in said or b"\\x1b[3" in said
