"""Jobs that take the place of older ones: each tells its value, the first waits for the test."""

import os

import redis

from rqueue.tasks.decorator import task

_client: dict[int, redis.Redis] = {}


def _server() -> redis.Redis:
    if os.getpid() not in _client:
        url = os.environ["TEST_URL"]
        _client[os.getpid()] = redis.Redis.from_url(url, socket_timeout=None)
    return _client[os.getpid()]


@task(name="refresh")
def refresh(key: str, value: int) -> int:
    """Tell the value; a negative one waits until the test says that it may end."""
    _server().rpush(f"{key}:seen", value)
    if value < 0:
        _server().blpop([f"{key}:go"])
    return value
