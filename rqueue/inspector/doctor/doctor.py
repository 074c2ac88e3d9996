"""Checks a live server and its queues against what must always hold, and repairs when asked.

Nothing is stopped for it. It reads in pages of some hundred jobs; what looks wrong is looked at
again, twice, before it is reported, because a queue moves while it is read. A repair is one atomic
script per job or consumer, which looks once more itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, cast

import redis

from rqueue.errors import InvalidName, QueueDamaged, RedisUnavailable, UnknownQueue
from rqueue.inspector.doctor.checkup import LOOKS, PAUSE_S, Checkup
from rqueue.inspector.doctor.cluster_checks import check_nodes, primary_away, unchecked
from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.inspector.doctor.flow_checks import ends_elsewhere
from rqueue.inspector.doctor.kept_tables import put_back
from rqueue.inspector.doctor.owner_checks import kind_of_groups
from rqueue.inspector.doctor.service_checks import check_service
from rqueue.inspector.doctor.shard_checks import (
    check_places,
    diagnose_table,
    kind_of_table,
    see_to_shards,
)
from rqueue.inspector.doctor.walk import Walk
from rqueue.inspector.parts import Parts, Places
from rqueue.inspector.queues import require_queue
from rqueue.model.job import DEFAULT_LEVEL
from rqueue.protocol import commands
from rqueue.protocol.commands.admin import SLICE
from rqueue.protocol.keys import QueueKeys
from rqueue.settings import redact
from rqueue.transport.asked_ahead import AskedAhead
from rqueue.transport.key_scan import find_queues, keys_by_base
from rqueue.transport.redis_client import execute, open_client

SCANNED = 500
"""Queues whose keys one scan of the server finds."""

ROUNDS = 20
"""Rounds of checking and repairing that one repair takes at the most."""


class Doctor:
    """Made by `Inspector.doctor()`. `looked_at`: elements that the checks so far have read."""

    def __init__(
        self,
        client: redis.Redis,
        namespace: str,
        *,
        wait: Callable[[float], None] = time.sleep,
        places: Places | None = None,
    ) -> None:
        self._ahead = AskedAhead(client)
        self._client = client = cast("redis.Redis", self._ahead)
        self._namespace = namespace
        self._sleep = wait
        self._places = places.over(client) if places else Places(client, namespace, open_client)
        self.looked_at = 0

    def _wait(self, seconds: float) -> None:
        """Let time pass between two looks."""
        self._ahead.expire()
        self._sleep(seconds)

    def check_server(self) -> list[Finding]:
        """Findings that an operator should mend on the server, or on any node of a cluster and
        between them."""
        return check_nodes(self._client, self._wait)

    def check_places(self, names: list[str]) -> list[Finding]:
        """The same of other servers, which shards of these queues are on."""
        spread = self._spread(names)
        return [one for parts in spread.values() for one in check_places(parts, self._wait)]

    def with_shards(self, names: Mapping[str, str]) -> dict[str, str]:
        """These queues and their nodes, and the shards of those that are spread."""
        found = dict(names)
        for name, parts in self._spread(list(names)).items():
            for part in parts:
                place = part.shard.place if part.shard is not None else ""
                found.setdefault(part.name, redact(place) or names[name])
        return found

    def _spread(self, names: list[str]) -> dict[str, Parts]:
        found: dict[str, Parts] = {}
        with suppress(QueueDamaged, InvalidName):
            return self._places.spread(names)
        for name in names:
            # of a damaged one `check_queue` says what is wrong
            with suppress(QueueDamaged, InvalidName):
                found |= self._places.spread([name])
        return found

    def check_queue(self, name: str) -> list[Finding]:
        """The problems of one queue; of one that is spread those of its table. Raises
        UnknownQueue."""
        client, keys = self._place(name)
        require_queue(client, keys)
        checkup = Checkup(client, keys, self._wait)
        found = checkup.findings()
        self.looked_at += checkup.walk.jobs
        return found + self._check_table(keys)

    def _place(self, name: str) -> tuple[redis.Redis, QueueKeys]:
        """Where a queue is."""
        keys = QueueKeys(name, self._namespace)
        try:
            part = self._places.parts(name).found[0]
        except QueueDamaged:
            return self._client, keys
        return (part.client, keys) if part.name == name else (self._client, keys)

    def _check_table(self, keys: QueueKeys) -> list[Finding]:
        """What is wrong each time that it is looked at."""
        found = diagnose_table(self._places, keys)
        for _ in range(LOOKS - 1):
            if not found:
                return []
            self._wait(PAUSE_S)
            again = {one.key for one in diagnose_table(self._places, keys)}
            found = [one for one in found if one.key in again]
        return found

    def check_service(self, name: str) -> list[Finding]:
        """Notes on jobs that no worker will run as things are; none of a queue that is damaged, or
        that is not there."""
        try:
            return check_service(*self._place(name))
        except QueueDamaged:
            return []  # `check_queue` says what is wrong
        except UnknownQueue:
            return []  # `check_queue` has seen what is left of a deleted one, or it went meanwhile

    def check(self) -> list[Finding]:
        """The server and all its queues, and the shards of these on other servers. What cannot be
        asked is a finding."""
        found = self.check_server()
        if primary_away(found):
            return found
        here = find_queues(self._client, self._namespace).nodes
        found += self.check_places(list(here))
        for its in self.check_queues_at(self.with_shards(here)):
            found += its
        return list(dict.fromkeys(found))

    def check_queues_at(self, names: Mapping[str, str]) -> Iterator[list[Finding]]:
        """`check_queue_at` of queues and their nodes, one after the other: each is asked at once
        for what those before were asked for, and the keys of many are found by one scan."""
        queues = [QueueKeys(name, self._namespace) for name in names]
        for start in range(0, len(queues), SCANNED):
            some = queues[start : start + SCANNED]
            for keys in self._ahead.each(some, keys_by_base(self._client, some)):
                yield self.check_queue_at(keys.queue, names[keys.queue])

    def check_queue_at(self, name: str, node: str) -> list[Finding]:
        """Problems and notes of one queue; node: of a cluster, where it is, or the server of a
        shard. That this one went away is a finding too. Raises UnknownQueue."""
        try:
            return self.check_queue(name) + self.check_service(name)
        except RedisUnavailable as error:
            if not node:
                raise
            return [unchecked(name, node, error)]

    def repair(self, finding: Finding) -> bool:
        """Do the remedy of one finding; False if it has none. The script itself looks
        whether something has changed meanwhile."""
        if finding.action is None or not finding.remedy:
            return False
        self._act(*self._place(finding.queue), finding.action)
        return True

    def heal(
        self, name: str, on_repair: Callable[[Finding], None] = lambda _finding: None
    ) -> list[Finding]:
        """Check and repair a queue until a checkup finds nothing that can be repaired; returns what
        is left. on_repair: called with each finding that was repaired."""
        for _ in range(ROUNDS):
            found = self.check_queue(name)
            repaired = False
            for finding in found:
                if self.repair(finding):
                    repaired = True
                    on_repair(finding)
            if not repaired:
                return found
        return self.check_queue(name)

    def heal_at(
        self, name: str, node: str, on_repair: Callable[[Finding], None] = lambda _finding: None
    ) -> list[Finding]:
        """`heal`, and what there is to say of its service; node: see `check_queue_at`."""
        try:
            return self.heal(name, on_repair) + self.check_service(name)
        except RedisUnavailable as error:
            if not node:
                raise
            return [unchecked(name, node, error)]

    def _act(self, client: redis.Redis, keys: QueueKeys, action: Action) -> None:
        def run(call: commands.ScriptCall[Any]) -> None:
            execute(client, call, queue=keys.queue)

        if action.verb == "job":
            for id_ in action.ids:
                run(commands.repair_job(keys, id_, "place", action.member, action.others))
        elif action.verb == "order":
            # all out first: into a list that is not sorted nothing can be put at its place
            for step in ("take", "place"):
                for id_ in action.ids:
                    run(commands.repair_job(keys, id_, step, b"", action.others))
        elif action.verb == "consumer":
            for name in action.ids:
                while execute(client, commands.repair_consumer(keys, name), queue=keys.queue)[1]:
                    pass
        elif action.verb == "type":
            run(commands.repair_type(keys, action.which))
            if action.which == "meta":
                # without it there is no queue to look at; the checks after this one find the rest
                run(commands.repair_meta(keys, [DEFAULT_LEVEL]))
                if kind := kind_of_table(client, keys) or kind_of_groups(client, keys):
                    run(commands.configure(keys, {"v": kind.stamp}))
        elif action.verb == "meta":
            run(commands.repair_meta(keys, action.levels, action.marked, action.highest))
        elif action.verb == "group":
            seen = action.miscount, action.ids
            run(commands.repair_group(keys, action.which, action.marked, *seen))
        elif action.verb == "owner":
            for name in action.ids:
                run(commands.group_owner(keys, consumer=name, reset=True))
            if action.which:
                run(commands.group_owner(keys, bucket=int(action.which), reset=True))
        elif action.verb == "outbox":
            for start in range(0, len(action.ids), SLICE):
                run(commands.repair_outbox(keys, action.ids[start : start + SLICE]))
        elif action.verb == "room":
            while execute(client, commands.repair_room(keys), queue=keys.queue):
                pass
        elif action.verb == "unique":
            run(commands.mend_keys(keys, action.ids))
        elif action.verb == "parents":
            for id_ in action.ids:
                run(commands.repair_parents(keys, id_, action.place))
                if said := ends_elsewhere(Walk(client, keys), id_, action.place):
                    run(commands.join(keys, [(id_, said)]))
        elif action.verb == "shards":
            see_to_shards(self._places, keys)
        elif action.verb == "table":
            spread = QueueKeys(action.which, self._namespace)
            if put_back(self._places, spread):
                see_to_shards(self._places, spread)
        elif action.verb == "leftovers":
            run(commands.repair_leftovers(keys, action.which, action.ids))
        else:
            # what every pool does with each renewal of its leases
            while execute(client, commands.renew(keys, 1000, []), queue=keys.queue).more:
                pass
