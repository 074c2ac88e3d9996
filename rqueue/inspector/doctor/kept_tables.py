"""The tables of shards as the shards themselves keep them: what a lost one is put back from."""

from __future__ import annotations

from dataclasses import dataclass

import redis

from rqueue.errors import QueueDamaged, RedisUnavailable, ServerError
from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.inspector.parts import Places
from rqueue.model.shard_table import ShardTable, shard_of_name
from rqueue.protocol.commands.queue_keys import is_used, meta_fields, remove_keys
from rqueue.protocol.commands.shards import kept_table, read_shards, set_shards
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.redis_client import execute, is_cluster

__all__ = [
    "KeptTable",
    "compared",
    "gone_with_its_queue",
    "keep_anew",
    "kept_by_shards",
    "lost_table",
    "put_back",
]

AHEAD = 2
"""By so much the version grows when a table is put back: one more than the newest that shards know
may have been made, and read by clients, before any of them was informed."""


@dataclass(frozen=True)
class KeptTable:
    """The newest table that the shards of a queue keep (version 0: none), and why it is not to be
    put back, "" where nothing speaks against it. over: what it says that moves has moved."""

    table: ShardTable
    problem: str = ""
    over: bool = False


@dataclass(frozen=True)
class Said:
    """What one shard says: the table that it keeps, the version that it knows, whether it waits for
    others."""

    table: ShardTable
    version: int = 0
    waits: bool = False


def kept_by_shards(places: Places, keys: QueueKeys) -> KeptTable:
    """Which of the tables that the shards of a queue keep is in force. Raises the server errors of
    this server."""
    said_by, away = _asked(places, keys)
    tables = [one.table for one in said_by.values()]
    newest = max(tables, key=lambda table: table.version, default=ShardTable(keys.queue))
    same = [table.layout for table in tables if table.version == newest.version]
    known = max((one.version for one in said_by.values()), default=0)
    if not newest.version:
        problem = away or "none of them keeps it"
    elif any(layout != newest.layout for layout in same):
        problem = f"they keep several tables of version {newest.version}"
    elif known > newest.version:
        problem = f"one knows version {known}, which none keeps"
    elif execute(places.client_at(""), is_used(keys)):
        problem = "the name has jobs or consumers of its own by now"
    else:
        problem = away
    targets = [said_by.get(newest.name(number)) for number in newest.move.targets]
    over = all(one and one.version == newest.version and not one.waits for one in targets)
    return KeptTable(newest, problem, over)


def _asked(places: Places, keys: QueueKeys) -> tuple[dict[str, Said], str]:
    """What the shards of a queue say that are on this server, then those that their tables name,
    wherever these are; and which of them cannot be asked, "" for none. Raises the server errors of
    this server; a node of a cluster is as another server."""
    home = places.client_at("")
    found = places.found()
    left = {name: home for name in found.nodes if _of(keys.queue, name)}
    said_by: dict[str, Said] = {}
    away = next((f"node {node} cannot be asked: {why}" for node, why in found.missing.items()), "")
    while left:
        name, client = left.popitem()
        try:
            said_by[name] = _ask(keys, name, client)
        except ServerError as error:
            if client is home and not is_cluster(home):
                raise
            said_by[name], away = Said(ShardTable(keys.queue)), f"'{name}' cannot be asked: {error}"
        table = said_by[name].table
        for shard in table.served:
            if table.name(shard) not in said_by:
                left[table.name(shard)] = places.client_at(shard.place)
    return said_by, away


def _ask(keys: QueueKeys, name: str, client: redis.Redis) -> Said:
    its = QueueKeys(name, keys.namespace)
    names = ("shard_of", "shard_version", "fences")
    of, version, fences = execute(client, meta_fields(its, *names))
    if of is None or of.decode("utf-8", "replace") != keys.queue:
        return Said(ShardTable(keys.queue))
    known = int(version) if version is not None and version.isdigit() else 0
    try:
        kept = execute(client, kept_table(its))
    except QueueDamaged:
        kept = {}
    return Said(_readable(keys.queue, kept), known, bool(fences))


def _readable(queue: str, fields: dict[str, str]) -> ShardTable:
    """The table of these fields; of version 0 where there is none, or none that can be read."""
    try:
        return ShardTable.of(queue, fields)
    except ValueError:
        return ShardTable(queue)


def _of(queue: str, name: str) -> bool:
    said = shard_of_name(name)
    return said is not None and said[0] == queue


def put_back(places: Places, keys: QueueKeys) -> bool:
    """Put the newest table back that the shards keep, in place of an earlier one or of none;
    whether that was done. Raises the server errors."""
    kept = kept_by_shards(places, keys)
    home = places.client_at("")
    try:
        there = execute(home, read_shards(keys), queue=keys.queue)
    except QueueDamaged:
        there = ShardTable(keys.queue)
    known = there.version == kept.table.version and there.layout == kept.table.layout
    if kept.problem or known or there.version > kept.table.version:
        return False
    fields = kept.table.fields | {"version": str(kept.table.version + AHEAD)}
    if kept.over:
        fields["moving"] = ""
    # an earlier one, or one made anew, may name shards that this one does not
    execute(home, remove_keys(keys, [keys.shards]))
    return execute(home, set_shards(keys, 0, fields), queue=keys.queue)


@dataclass(frozen=True)
class Compared:
    """A table beside those that the shards keep which know its version. astray: the names of those
    that keep another one, or none. outvoted: all of them do, two at least, and the same."""

    astray: list[str]
    outvoted: bool


def compared(places: Places, table: ShardTable, keys: QueueKeys) -> Compared:
    """Compare them. Raises the server errors of this server."""
    said_by = {
        name: said.table
        for name, said in _asked(places, keys)[0].items()
        if said.version == table.version
    }
    astray = [
        name
        for name, kept in said_by.items()
        if kept.version != table.version or kept.layout != table.layout
    ]
    first, *others = [said_by[name] for name in astray] or [table]
    alike = all(one.layout == first.layout for one in others)
    known = all(said_by[name].version == table.version for name in astray)
    return Compared(
        sorted(astray), bool(others) and alike and known and len(astray) == len(said_by)
    )


def keep_anew(places: Places, table: ShardTable, keys: QueueKeys) -> None:
    """Take away what shards keep that is not this table: it is given to them when they are informed
    next. Raises the server errors."""
    for name in compared(places, table, keys).astray:
        shard = next((one for one in table.served if table.name(one) == name), None)
        if shard is not None:
            its = QueueKeys(name, keys.namespace)
            execute(places.client_at(shard.place), remove_keys(its, [its.base + "kept_shards"]))


def gone_with_its_queue(places: Places, keys: QueueKeys) -> list[Finding]:
    """A finding, where this queue is a shard of one that is gone, its table and all."""
    said = shard_of_name(keys.queue)
    if said is None:
        return []
    home, parent = places.client_at(""), QueueKeys(said[0], keys.namespace)
    (of,) = execute(home, meta_fields(keys, "shard_of"))
    if of is None or of.decode("utf-8", "replace") != parent.queue:
        return []
    try:
        if execute(home, read_shards(parent), queue=parent.queue).version:
            return []
    except QueueDamaged:
        return []  # which is found in that queue
    except RedisUnavailable as error:
        if not is_cluster(home):
            raise
        says = f"the table of queue '{parent.queue}', whose shard it is, cannot be looked at:"
        return [Finding("shards", "not-checked", keys.queue, "", f"{says} {error}")]
    says = f"the table of queue '{parent.queue}', whose shard it is, is gone"
    return [lost_table(places, parent, keys.queue, "table", says)]


def lost_table(places: Places, keys: QueueKeys, name: str, kind: str, says: str) -> Finding:
    """The finding of a table that is gone, or is an earlier one. name: the queue that it is found
    in."""
    kept = kept_by_shards(places, keys)
    if kept.problem:
        says = (
            f"{says}: no job goes in. It cannot be put back from its shards: {kept.problem}. Put it"
            " back from a backup, or, where the shards have no jobs, delete them and create it anew"
        )
        return Finding("shards", kind, name, "", says)
    remedy = f"put back version {kept.table.version}, which its shards keep"
    action = Action("table", which=keys.queue)
    return Finding("shards", kind, name, "", f"{says}: no job goes in", remedy, action=action)
