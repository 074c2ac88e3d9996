"""What redis-py does beside the calls of a test, done once or in a fraction of the time.

It looks for who measures it five times in each call, where nobody does; reads its own version from
its package's files for each connection, which took more than all else of it; copies what says how
to try again through `copyreg`; and writes the 165 names of replies in capitals by a call each for
every client. Tests make tens of thousands of connections, and send millions of calls.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

import redis.asyncio.client
import redis.asyncio.connection
import redis.client
import redis.connection
import redis.utils
from redis.retry import AbstractRetry


def quicken() -> None:
    """Change redis-py in this process."""
    redis.utils.get_lib_version = cache(redis.utils.get_lib_version)
    for module in (redis.client, redis.connection):
        _replace(module, _nothing)
    for module in (redis.asyncio.client, redis.asyncio.connection):
        _replace(module, _nothing_later)
    AbstractRetry.__deepcopy__ = _copied  # type: ignore[attr-defined]
    redis.client.CaseInsensitiveDict.__init__ = _in_capitals  # type: ignore[method-assign]


def _replace(module: ModuleType, nothing: Any) -> None:
    for name in vars(module):
        if name.startswith("record_"):
            setattr(module, name, nothing)


def _nothing(*_: Any, **__: Any) -> None:
    pass


async def _nothing_later(*_: Any, **__: Any) -> None:
    pass


def _copied(retry: Any, _memo: dict[int, Any]) -> Any:
    """A pause of its own, which counts; all else is never changed in place."""
    made = object.__new__(type(retry))
    made.__dict__.update(retry.__dict__)
    backoff = made._backoff = object.__new__(type(retry._backoff))
    backoff.__dict__.update(retry._backoff.__dict__)
    return made


def _in_capitals(callbacks: Any, given: dict[str, Any]) -> None:
    dict.__init__(callbacks, ((name.upper(), value) for name, value in given.items()))
