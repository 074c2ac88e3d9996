"""Tasks whose jobs tell the test what they do through Redis lists, and wait for its word there."""

import itertools
import os
import signal

import redis

from rqueue.tasks.decorator import task


def _redis() -> redis.Redis:
    return redis.Redis.from_url(os.environ["TEST_URL"], decode_responses=True, socket_timeout=None)


@task(name="note")
def note(key: str, text: str) -> None:
    """Push `text` to the list `key`."""
    with _redis() as client:
        client.rpush(key, text)


@task(name="pid")
def pid(key: str) -> None:
    """Push this process's id to the list `key`."""
    with _redis() as client:
        client.rpush(key, os.getpid())


@task(name="hold")
def hold(key: str) -> str:
    """Say on `key`:started in which process it runs; return what comes on `key`:go."""
    with _redis() as client:
        client.rpush(f"{key}:started", os.getpid())
        answer = client.blpop([f"{key}:go"], 60)
        return str(answer[1]) if answer else "nobody answered"


@task(name="obstinate")
def obstinate(key: str) -> None:
    """As `hold`, but nothing that is raised ends it, and it says so on `key`:raised."""
    unsaid = [f"{key}:started"]
    while True:
        try:
            with _redis() as client:
                if unsaid:
                    client.rpush(unsaid.pop(), os.getpid())
                if client.blpop([f"{key}:go"], 60):
                    return
        except BaseException as error:
            with _redis() as client:
                client.rpush(f"{key}:raised", type(error).__name__)


@task(name="who")
def who(key: str) -> int:
    """Do as `hold` does, but return the process that it ran in."""
    hold(key)
    return os.getpid()


@task(name="die")
def die(key: str, how: str) -> None:
    """Say so on `key`, and die."""
    with _redis() as client:
        client.rpush(key, os.getpid())
    if how == "exit":
        os._exit(3)
    os.kill(os.getpid(), signal.Signals[how])


@task(name="deaf")
def deaf(key: str) -> None:
    """Hold the interpreter for good: no other thread runs, no signal is heard."""
    with _redis() as client:
        client.rpush(f"{key}:started", os.getpid())
    sum(itertools.repeat(1))
