"""The tables of shards as the shards themselves keep them: what a lost one is put back from."""

from __future__ import annotations

from dataclasses import dataclass

import redis

from rqueue.errors import ServerError
from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.inspector.parts import Places
from rqueue.model.shard_table import ShardTable, shard_of_name
from rqueue.protocol.commands.queue_keys import is_used, meta_fields, remove_keys
from rqueue.protocol.commands.shards import kept_table, read_shards, set_shards
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.redis_client import execute

__all__ = ["KeptTable", "gone_with_its_queue", "kept_by_shards", "lost_table", "put_back"]

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
    """Ask the shards of a queue that are on this server, then those that their tables name,
    wherever these are. Raises the server errors of this server."""
    home = places.client_at("")
    left = {name: home for name in places.names() if _of(keys.queue, name)}
    said_by: dict[str, Said] = {}
    away = ""
    while left:
        name, client = left.popitem()
        try:
            said_by[name] = _ask(keys, name, client)
        except ServerError as error:
            if client is home:
                raise
            said_by[name], away = Said(ShardTable(keys.queue)), f"'{name}' cannot be asked: {error}"
        table = said_by[name].table
        for shard in table.served:
            if table.name(shard) not in said_by:
                left[table.name(shard)] = places.client_at(shard.place)
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
    elif execute(home, is_used(keys)):
        problem = "the name has jobs or consumers of its own by now"
    else:
        problem = away
    targets = [said_by.get(newest.name(number)) for number in newest.move.targets]
    over = all(one and one.version == newest.version and not one.waits for one in targets)
    return KeptTable(newest, problem, over)


def _ask(keys: QueueKeys, name: str, client: redis.Redis) -> Said:
    its = QueueKeys(name, keys.namespace)
    names = ("shard_of", "shard_version", "fences")
    of, version, fences = execute(client, meta_fields(its, *names))
    if of is None or of.decode("utf-8", "replace") != keys.queue:
        return Said(ShardTable(keys.queue))
    known = int(version) if version is not None and version.isdigit() else 0
    return Said(_readable(keys.queue, execute(client, kept_table(its))), known, bool(fences))


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
    there = execute(home, read_shards(keys), queue=keys.queue)
    if kept.problem or there.version >= kept.table.version:
        return False
    fields = kept.table.fields | {"version": str(kept.table.version + AHEAD)}
    if kept.over:
        fields["moving"] = ""
    # an earlier one, or one made anew, may name shards that this one does not
    execute(home, remove_keys(keys, [keys.shards]))
    return execute(home, set_shards(keys, 0, fields), queue=keys.queue)


def gone_with_its_queue(places: Places, keys: QueueKeys) -> list[Finding]:
    """A finding, where this queue is a shard of one that is gone, its table and all."""
    said = shard_of_name(keys.queue)
    if said is None:
        return []
    home, parent = places.client_at(""), QueueKeys(said[0], keys.namespace)
    (of,) = execute(home, meta_fields(keys, "shard_of"))
    if of is None or of.decode("utf-8", "replace") != parent.queue:
        return []
    if execute(home, read_shards(parent), queue=parent.queue).version:
        return []
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
