"""Build the calls of queues that are spread over shards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from rqueue.errors import QueueDamaged
from rqueue.model.shard_table import ShardTable
from rqueue.protocol.call import Arg, CommandCall, ScriptCall, text
from rqueue.protocol.commands.commit import RUNS
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import shard, sharded

T = TypeVar("T")


class Informed(NamedTuple):
    """How far a shard is. word: it learned of the version ("new"), knew it ("known"), knows a later
    one ("old"), or is to be informed again, with the table ("lacks"). behind: something stands
    before its fence. empty: it has no job. fences: numbers of the shards that it waits for.
    remembers: it may know ids of jobs from before keys left it."""

    word: str
    behind: bool
    empty: bool
    fences: tuple[int, ...]
    remembers: bool


class Known(NamedTuple):
    """What a shard says of ids: the version of the table that it goes by (0: none), and which of
    them it knows, by their places."""

    version: int
    places: frozenset[int]


def read_shards(keys: QueueKeys) -> ScriptCall[ShardTable]:
    """The table of a queue's shards; version 0 where it has none."""

    def read(reply: Any) -> ShardTable:
        words = [text(word) for word in reply[1]]
        try:
            return ShardTable.of(keys.queue, dict(zip(words[::2], words[1::2], strict=True)))
        except ValueError as error:
            raise QueueDamaged(keys.queue, keys.shards, problem=str(error)) from None

    return ScriptCall("read_shards", keys.meta, (), read)


def _read_set(reply: Any) -> bool:
    return bool(reply[2])


def set_shards(keys: QueueKeys, before: int, fields: Mapping[str, Arg]) -> ScriptCall[bool]:
    """Change the table, which has this version still; False where another one was first."""
    args: list[Arg] = [before]
    for name, value in fields.items():
        args += (name, value)
    return ScriptCall("set_shards", keys.meta, args, _read_set, (sharded.POLICY.name,))


def _read_informed(reply: Any) -> Informed:
    _, word, behind, empty, fences, remembers = reply
    waits_for = tuple(int(one) for one in text(fences).split() if one.isdecimal())
    return Informed(text(word), bool(behind), bool(empty), waits_for, bool(remembers))


def inform_shard(
    keys: QueueKeys,
    of: str,
    version: int,
    role: str = "",
    sources: Iterable[int] = (),
    fields: Mapping[str, Arg] | None = None,
) -> ScriptCall[Informed]:
    """Tell a shard of queue `of` which version is in force. fields: the whole table, which the
    shard keeps; needed where it keeps none of this version. role: "", "fence" (what it has goes
    before what comes to others), "shut" (and nothing comes any more), "wait" (for the fences of the
    sources)."""
    args: list[Arg] = [of, version, role, " ".join(map(str, sources))]
    for name, value in (fields or {}).items():
        args += (name, value)
    return ScriptCall("inform_shard", keys.meta, args, _read_informed, (shard.POLICY.name,))


def _read_kept(replies: Sequence[Any]) -> dict[str, str]:
    (found,) = replies
    pairs = found.items() if isinstance(found, Mapping) else zip(*[iter(found)] * 2, strict=True)
    return {text(name): text(value) for name, value in pairs}


def kept_table(keys: QueueKeys) -> CommandCall[dict[str, str]]:
    """The fields of the table that a shard keeps (`ShardTable.of`); none where it keeps none."""
    return CommandCall(keys.meta, [("HGETALL", keys.base + "kept_shards")], _read_kept)


def _read_lifted(reply: Any) -> bool:
    return bool(reply[1])


def lift_fence(keys: QueueKeys, version: int, source: int) -> ScriptCall[bool]:
    """What stood before the fence of a source is gone; whether the shard delivers by that."""
    args: list[Arg] = [version, source]
    return ScriptCall("lift_fence", keys.meta, args, _read_lifted, (shard.POLICY.name,))


def _read_known(reply: Any) -> Known:
    _, version, found = reply
    return Known(version, frozenset(place for place, known in enumerate(found) if known))


def find_known(keys: QueueKeys, ids: Iterable[str]) -> ScriptCall[Known]:
    """Which of these ids a shard knows: of jobs that live, or of records."""
    return ScriptCall("find_known", keys.meta, [*ids], _read_known)


def of_version(call: ScriptCall[T], version: int) -> ScriptCall[T]:
    """An enqueue into a shard, or a commit that enqueues there, by the table of this version."""
    at = RUNS if call.script == "commit" else 1
    args = list(call.args)
    args[at] = f"{args[at]!s}#{version}"
    return call._replace(args=args, needs=(*call.needs, shard.POLICY.name))
