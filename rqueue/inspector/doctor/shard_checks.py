"""Problems of a queue that is spread: its table, and what each of its shards knows of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import redis

from rqueue.client._sync.shard_course import advance
from rqueue.errors import QueueDamaged, ServerError
from rqueue.inspector.doctor.cluster_checks import check_nodes, unchecked
from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.inspector.doctor.kept_tables import (
    compared,
    gone_with_its_queue,
    keep_anew,
    lost_table,
)
from rqueue.inspector.parts import Part, Parts, Places
from rqueue.model.shard_table import SHARDS_MAX, Shard, ShardTable
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.queue_keys import meta_fields
from rqueue.protocol.commands.shards import lift_fence, read_shards
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import Kind, sharded
from rqueue.settings import redact
from rqueue.text.escape import shown
from rqueue.transport.redis_client import execute

__all__ = ["check_places", "diagnose_table", "kind_of_table", "see_to_shards"]

AGAIN = "tell the shards of the table, as clients and pools do"


def check_places(parts: Parts, wait: Callable[[float], None]) -> list[Finding]:
    """Findings of the other servers that shards are on."""
    found: list[Finding] = []
    clients = {part.shard.place: part.client for part in parts if part.shard and part.shard.place}
    for place, client in clients.items():
        server = redact(place)
        try:
            its = check_nodes(client, wait)
        except ServerError as error:
            says = f"server {server}, which shards of '{parts.queue}' are on, cannot be asked:"
            found.append(Finding("server", "shards-away", parts.queue, server, f"{says} {error}"))
        else:
            found += [
                replace(one, subject=server, says=f"server {server}: {one.says}") for one in its
            ]
    return found


def diagnose_table(places: Places, keys: QueueKeys) -> list[Finding]:
    """What is wrong with the table of a queue that is spread, and what its shards say otherwise;
    nothing of any other."""
    try:
        parts = places.spread([keys.queue]).get(keys.queue)
    except QueueDamaged as error:
        says = f"its table of shards is damaged: {error.problem}"
        return [lost_table(places, keys, keys.queue, "table", says)]
    if parts is None or parts.table is None:
        return gone_with_its_queue(places, keys)
    if not parts.table.version:
        says = "its table of shards is gone"
        return [lost_table(places, keys, keys.queue, "table", says)]
    answers, missing = parts.each(_known)
    versions = [its.version for its in answers.values()]
    if max(versions, default=0) > parts.table.version:
        says = (
            f"its table of shards has version {parts.table.version}, and a shard knows version"
            f" {max(versions)}: an earlier one was put back"
        )
        return [lost_table(places, keys, keys.queue, "table-behind", says)]
    beside = compared(places, parts.table, keys)
    if beside.outvoted:
        says = "its table of shards is not the one that its shards keep"
        return [lost_table(places, keys, keys.queue, "table-other", says)]
    found = [
        _finding(
            keys,
            "kept-table",
            f"its shard '{name}' does not keep version {parts.table.version} of the table as it is",
            name,
            AGAIN,
        )
        for name in beside.astray
    ]
    found += [
        unchecked(name, redact(part.shard.place), missing[name])
        for part in parts
        if part.shard is not None and (name := part.name) in missing
    ]
    found += _standing(keys, parts.table, answers)
    for part in parts:
        if part.shard is not None and part.name in answers and part.shard.state != "closed":
            found += _shard(keys, parts.table, part.shard, answers[part.name])
    for name in parts.table.unknown:
        says = (
            f"its table of shards has a field {shown(name)}, of which this version knows nothing:"
            f" where no later version of rqueue is at work, take it away (HDEL {keys.shards} FIELD)"
        )
        found.append(_finding(keys, "table-field", says, name))
    return found


class Knows(NamedTuple):
    """What a shard says: whose it is, the version that it knows (0: none), the shards that it waits
    for, its own fence, and the last position that it gave."""

    of: str
    version: int
    fences: str
    fence: str
    last: int


def _known(part: Part) -> Knows:
    names = ("shard_of", "shard_version", "fences", "fence", "seq")
    of, version, fences, fence, last = execute(part.client, meta_fields(part.keys, *names))
    return Knows(_text(of), _number(version), _text(fences), _text(fence), _number(last))


def _number(raw: bytes | None) -> int:
    return int(raw) if raw is not None and raw.isdigit() else 0


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8", "replace")


def _shard(keys: QueueKeys, table: ShardTable, shard: Shard, its: Knows) -> Iterator[Finding]:
    name = table.name(shard)
    of, version, fences = its.of, its.version, its.fences
    if its.fence and (not its.fence.isdecimal() or int(its.fence) > its.last):
        says = f"its shard '{name}' has a fence that is no position of it: others wait for ever"
        remedy = "let all that it has now stand before the fence"
        yield _finding(keys, "fence", says, name, remedy)
    if not of and version:
        yield _finding(
            keys, "shard-of", f"its shard '{name}' does not say whose it is", name, AGAIN
        )
    elif of and of != keys.queue:
        yield _finding(keys, "shard-of", f"its shard '{name}' says that it is one of '{of}'", name)
    elif version == 0:
        says = f"its shard '{name}' is gone, or was not informed of the table yet"
        yield _finding(keys, "shard-gone", says, name, AGAIN)
    elif version < table.version:
        says = f"its shard '{name}' does not know version {table.version} of the table yet"
        yield _finding(keys, "not-informed", says, name, AGAIN)
    elif fences and not table.moving:
        says = f"its shard '{name}' waits for shards {fences}, and nothing is changing"
        yield _finding(keys, "stray-fence", says, name, "let it deliver")


def _standing(
    keys: QueueKeys, table: ShardTable, answers: Mapping[str, Knows]
) -> Iterator[Finding]:
    """Shards that wait for others before whose fences nothing stands any more."""
    its = {number: answers.get(table.name(shard)) for number, shard in table.shards.items()}
    for number in table.move.targets if table.moving else ():
        waiting = its.get(number)
        for source in waiting.fences.split() if waiting else ():
            other = its.get(int(source)) if source.isdecimal() else None
            if other is not None and other.version == table.version and not other.fence:
                name = table.name(table.shards[number])
                says = (
                    f"its shard '{name}' delivers nothing: it waits for shard {source}, in which"
                    " nothing stands before the fence any more, and nobody lifts that"
                )
                yield _finding(keys, "standing-fence", says, name, AGAIN)


def _finding(keys: QueueKeys, kind: str, says: str, subject: str = "", remedy: str = "") -> Finding:
    action = Action("shards") if remedy else None
    return Finding("shards", kind, keys.queue, subject, says, remedy, action=action)


def kind_of_table(client: redis.Redis, keys: QueueKeys) -> Kind | None:
    """The kind of a queue that has lost its `meta`, where it has a table of shards still."""
    try:
        table = execute(client, read_shards(keys), queue=keys.queue)
    except QueueDamaged:
        return None
    return Kind.of([sharded.POLICY.name]) if table.version else None


def see_to_shards(places: Places, keys: QueueKeys) -> None:
    """Do what the table asks for, and lift fences that nothing asks for. Raises the server
    errors."""
    home = places.client_at("")

    def run(shard: Shard | None, call: ScriptCall[Any]) -> Any:
        return execute(home if shard is None else places.client_at(shard.place), call)

    keep_anew(places, execute(home, read_shards(keys), queue=keys.queue), keys)
    table = advance(run, keys)
    if table.moving:
        return
    for shard in table.served:
        its = QueueKeys(table.name(shard), keys.namespace)
        client = places.client_at(shard.place)
        (fences,) = execute(client, meta_fields(its, "fences"))
        for source in _text(fences).split():
            # of what is no number of a shard nothing is left when any fence is lifted
            number = int(source) if source.isdecimal() else SHARDS_MAX
            execute(client, lift_fence(its, table.version, number))
