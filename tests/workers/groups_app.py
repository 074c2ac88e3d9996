"""Jobs of groups that tell when they begin and end; some end their worker, or fail, at first."""

import os
import signal

import redis

from rqueue.tasks.control import Retry
from rqueue.tasks.decorator import task

_client: dict[int, redis.Redis] = {}


def _server() -> redis.Redis:
    if os.getpid() not in _client:
        _client[os.getpid()] = redis.Redis.from_url(os.environ["TEST_URL"])
    return _client[os.getpid()]


@task(name="in_turn")
def in_turn(key: str, group: str, number: int, how: str) -> None:
    """Begin and end. how: what becomes of it the first time: "", "killed", "retried"; or each time:
    "fails"."""
    server = _server()
    server.rpush(key, f"begin {group} {number}")
    first = how and server.hsetnx(f"{key}:tried", f"{group} {number}", "1")
    if first and how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    server.rpush(key, f"end {group} {number}")
    if how == "fails":
        raise RuntimeError("as its arguments say")
    if first and how == "retried":
        raise Retry(after=0.05)


@task(name="in_place")
def in_place(key: str, group: str, number: int, dies: bool) -> None:
    """Begin and end, and say which process does it. dies: the first time that process is killed."""
    server, pid = _server(), os.getpid()
    server.rpush(key, f"begin {group} {number} {pid}")
    if dies and server.hsetnx(f"{key}:tried", f"{group} {number}", "1"):
        os.kill(pid, signal.SIGKILL)
    server.rpush(key, f"end {group} {number} {pid}")
