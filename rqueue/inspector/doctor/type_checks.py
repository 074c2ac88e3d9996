"""Keys of a queue that something else has overwritten: nothing else can be read before they are
moved away."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import redis

from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.protocol import commands
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.key_scan import scan_queue
from rqueue.transport.redis_client import execute

PAGE = 500
"""Keys that one call looks at."""


def diagnose_types(client: redis.Redis, keys: QueueKeys) -> Iterator[Finding]:
    """A finding for each key that is of another type than rqueue keeps there."""
    base = keys.base
    names = (key[len(base) :] for key in scan_queue(client, keys))
    while page := list(islice(names, PAGE)):
        for key, found, expected in execute(
            client, commands.check_types(keys, page), queue=keys.queue
        ):
            yield Finding(
                "types",
                "wrong-type",
                keys.queue,
                key,
                f"the key '{base}{key}' is a {found}, where rqueue keeps a {expected}: something"
                " else wrote it, and steps that meet it fail",
                f"move it to '{base}foreign:{key}', where nobody looks; then jobs that are in no"
                " place are put back",
                action=Action("type", which=key),
            )
