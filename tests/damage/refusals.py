"""Whether a call that was refused has changed anything."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import redis

from tests.damage.world import KEYS
from tests.support import invariants
from tests.support.snapshot import take_snapshot


def digest(client: redis.Redis) -> bytes:
    """Another one for whatever differs: in any key, or in whether it has a lifetime. It is had
    sooner than all that there is."""
    found: bytes = client.execute_command("DEBUG", "DIGEST")
    return found


def differences(
    client: redis.Redis, damage: Callable[[], object], call: Callable[[], object]
) -> list[str]:
    """What a refused call changes in a damaged queue, in words: it is called once more, since
    digests say only that something is another."""
    damage()
    before = take_snapshot(client, KEYS)
    with suppress(redis.ResponseError):
        call()
    found = invariants.unchanged(before, take_snapshot(client, KEYS))
    return found or ["a key has a lifetime, or none any more"]
