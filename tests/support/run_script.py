"""Running a script of any folder: of the shipped ones, or of a copy with a planted fault."""

from collections.abc import Sequence
from typing import Any

import redis
from redis.exceptions import NoScriptError

from rqueue.protocol.scripts import Script


def run(client: redis.Redis, script: Script, keys: Sequence[str], args: Sequence[Any] = ()) -> Any:
    """The reply of Redis. Raises what redis-py raises."""
    try:
        return client.evalsha(script.sha, len(keys), *keys, *args)
    except NoScriptError:
        return client.eval(script.source, len(keys), *keys, *args)
