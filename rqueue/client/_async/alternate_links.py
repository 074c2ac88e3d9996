"""Where a queue's dead letters and expired jobs go: what is looked at, and noted in the targets,
before the queue itself is configured."""

from __future__ import annotations

from collections.abc import Mapping

from rqueue.client._async.queue_calls import AsyncQueueCalls
from rqueue.errors import ConfigError
from rqueue.model.names import check_queue
from rqueue.protocol import commands
from rqueue.protocol.commands.outgoing import Alternates, link
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.sharding import refuse_spread

__all__ = ["configure_with_targets"]

PASSED_MOST = 8
"""Queues that a job passes at the most."""


async def configure_with_targets(queue: AsyncQueueCalls, options: Mapping[str, int | str]) -> None:
    """Set options, some of which name other queues. Raises ConfigError for a target that is not
    there, and for one from which jobs would come back, and QueueSharded for one that is spread."""
    before = await _alternates(queue, queue.name)
    after = Alternates(
        str(options.get("dead_to", before.dead_to)),
        str(options.get("expired_to", before.expired_to)),
        True,
    )
    for name in ("dead_to", "expired_to"):
        if target := options.get(name):
            await _check(queue, name, check_queue(str(target)))
    # noted first: a target that is noted and not used is found out when it is to be deleted
    for target, what in after.targets.items():
        if not await queue._run(link(_keys(queue, target), queue.name, what)):
            raise _unknown("dead_to" if "dead" in what else "expired_to", target)
    await queue._run(commands.configure(queue.keys, options))
    for target in before.targets.keys() - after.targets.keys():
        await queue._run(link(_keys(queue, target), queue.name, ()))


def _keys(queue: AsyncQueueCalls, name: str) -> QueueKeys:
    return QueueKeys(name, queue.keys.namespace)


async def _alternates(queue: AsyncQueueCalls, name: str) -> Alternates:
    meta = (await queue._run(commands.counts(_keys(queue, name), oldest=False))).meta
    return Alternates(meta.get("dead_to", ""), meta.get("expired_to", ""), bool(meta))


def _unknown(name: str, target: str) -> ConfigError:
    return ConfigError(name, f"there is no queue '{target}': enqueue into it, or configure it")


async def _check(queue: AsyncQueueCalls, name: str, target: str) -> None:
    """That the target is there, has its jobs itself, and leads neither back nor through too many
    queues."""
    if target == queue.name:
        raise ConfigError(name, f"queue '{target}' itself: its jobs would go in a circle")
    seen, level = {queue.name, target}, [target]
    for passed in range(PASSED_MOST):
        following: list[str] = []
        for one in level:
            found = await _alternates(queue, one)
            if one == target:
                refuse_spread(_keys(queue, target))
            if not found.there and one == target:
                raise _unknown(name, target)
            if queue.name in found.targets:
                raise ConfigError(
                    name,
                    f"jobs of queue '{target}' come back to '{queue.name}': a circle",
                )
            following += [its for its in found.targets if its not in seen]
            seen.update(following)
        level = following
        if not level:
            return
        if passed == PASSED_MOST - 2:
            raise ConfigError(name, f"jobs would pass more than {PASSED_MOST} queues")
