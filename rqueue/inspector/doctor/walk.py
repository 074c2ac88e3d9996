"""A queue's keys, and the elements of its places in pages: what a checkup reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import redis

from rqueue.model.ids import new_id
from rqueue.protocol import commands
from rqueue.protocol.call import CommandCall
from rqueue.protocol.commands.class_notes import classes_known
from rqueue.protocol.commands.consumer_checks import consumer_names
from rqueue.protocol.commands.owner_notes import owners_of
from rqueue.protocol.commands.queue_keys import meta_fields
from rqueue.protocol.commands.repair import CHECK_PAGE, Checked
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.key_scan import scan_queue
from rqueue.transport.redis_client import execute

S = TypeVar("S")


class Walk:
    """Reads one queue. `name`: of this walk alone. `jobs`: elements that were read. `levels` and
    `names` are those that any key speaks of, `registered` the names of real consumers, `others` the
    rest. `highest`: the highest position seen; `promoted`: whether one of the lists holds jobs that
    were due. `groups`: those with jobs behind the first one, as in the names of keys. `classes`:
    labels -> number of a class; `class_numbers`: those that have jobs. `refusals`: terms of
    consumers that refused ready jobs. `owners`: bucket of sticky groups -> its consumer; `own`:
    those for which jobs are ready."""

    def __init__(self, client: redis.Redis, keys: QueueKeys) -> None:
        self.client = client
        self.keys = keys
        self.name = new_id()
        self.jobs = 0
        self.levels: set[int] = set()
        self.names: set[str] = set()
        self.groups: set[str] = set()
        self.classes: dict[str, str] = {}
        self.class_numbers: set[str] = set()
        self.refusals: set[str] = set()
        self.own: set[str] = set()
        self.owners: dict[int, str] = {}
        self.registered: set[str] = set()
        self.others: tuple[str, ...] = ()
        self.highest = 0
        self.promoted = False

    def execute(self, call: commands.ScriptCall[S] | CommandCall[S]) -> S:
        """Run a call."""
        return execute(self.client, call, queue=self.keys.queue)

    def look_around(self) -> None:
        """Levels and names, from all keys of the queue: those that no other key refers to are there
        too."""
        base = self.keys.base
        for key in scan_queue(self.client, self.keys, "[rdhcwgo]*"):
            kind, colon, name = key[len(base) :].partition(":")
            if kind in ("ready", "due") and name.isdigit():
                self.levels.add(int(name))
            elif kind == "group" and colon:
                self.groups.add(name)
            elif kind == "class" and colon:
                self.class_numbers.add(name)
            elif kind == "refused" and colon:
                self.refusals.add(name)
            elif kind == "own" and colon:
                self.own.add(name)
            elif kind in ("held", "consumer", "wake") and colon:
                self.names.add(name)
        self.levels |= self.meta_levels()
        self.classes = self.execute(classes_known(self.keys))
        self.owners = self.execute(owners_of(self.keys)).owners
        self.registered, listed = self.execute(consumer_names(self.keys))
        self.names |= self.registered | listed
        self.others = tuple(sorted(self.names - self.registered))

    def meta(self, *fields: str) -> list[bytes | None]:
        """Fields of meta."""
        return self.execute(meta_fields(self.keys, *fields))

    def meta_levels(self) -> set[int]:
        """The levels that pulls look at."""
        (levels,) = self.meta("levels")
        return {int(level) for level in (levels or b"").decode().split(",") if level.isdigit()}

    def class_places(self) -> list[str]:
        """The places of ready jobs with labels."""
        return [f"class:{number}" for number in sorted(self.class_numbers)]

    def group_places(self) -> list[str]:
        """Where jobs wait that have groups, or places of their own: sorted sets, whose members are
        those of the schedule."""
        named = [f"refused:{terms}" for terms in sorted(self.refusals)]
        named += [f"own:{name}" for name in sorted(self.own)]
        return ["heads", *(f"group:{group}" for group in sorted(self.groups)), *named]

    def pages(self, which: str) -> Iterator[list[Checked]]:
        """Pages from the end: jobs leave at the front and come at the end, so what is counted from
        the end is seen twice, never passed over."""
        stop = -1
        while True:
            call = commands.check_page(self.keys, which, stop - CHECK_PAGE + 1, stop)
            elements = self.execute(call).elements
            if not elements:
                return
            self.jobs += len(elements)
            orders = [element.order for element in elements]
            self.highest = max([self.highest, *(order[1] for order in orders if order)])
            yield elements
            stop -= CHECK_PAGE
