"""Problems of sticky groups: whose their buckets are, and where the ready jobs stand."""

from __future__ import annotations

from collections.abc import Mapping

import redis

from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.inspector.doctor.walk import Walk
from rqueue.model.job import parse_header
from rqueue.protocol.commands.group_notes import turns_page
from rqueue.protocol.commands.limit_notes import permits_state
from rqueue.protocol.commands.owner_notes import owners_of, stuck_owners
from rqueue.protocol.commands.places import job_value
from rqueue.protocol.commands.share_notes import strands_page
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import Kind
from rqueue.transport.redis_client import execute


def place_of_turn(head: str, owners: Mapping[int, str]) -> str:
    """Where the ready job with this header stands that has the turn of its group."""
    header = parse_header(head.encode("utf-8", "surrogateescape"))
    bucket = header.bucket if header else ""
    owner = owners.get(int(bucket), "") if bucket.isdigit() else ""
    return f"own:{owner}" if owner else "heads"


def kind_of_groups(client: redis.Redis, keys: QueueKeys) -> Kind | None:
    """The kind of a queue that has lost its stamp, as far as its groups say it, the permits of its
    limits, and the strands of its shares; None without such."""
    permits = execute(client, permits_state(keys))
    said = ["limits"] if permits.out or permits.claims or permits.most else []
    said += ["shares"] if execute(client, strands_page(keys, count=10)).strands else []
    if said:
        return Kind.of(said)
    turns = execute(client, turns_page(keys, count=10)).turns
    values = [execute(client, job_value(keys, id_)) for id_ in turns.values()]
    headers = [parse_header(value.partition(b";")[0]) for value in values if value]
    if any(header and header.bucket for header in headers):
        return Kind.of(["sticky"])
    return Kind.of(["groups"]) if turns else None


def diagnose_owner(walk: Walk, bucket: int) -> list[Finding]:
    """Whether the owner of this bucket is registered."""
    owner = walk.execute(owners_of(walk.keys)).owners.get(bucket, "")
    if not owner or owner in walk.registered:
        return []
    says = f"groups of bucket {bucket} are {owner!r}'s, which is not registered: they stand still"
    action = Action("owner", which=str(bucket))
    remedy = "the next consumer that takes a job of them owns them"
    return [Finding("groups", "owner", walk.keys.queue, str(bucket), says, remedy, action=action)]


def diagnose_own(walk: Walk, name: str) -> list[Finding]:
    """Whether this consumer owns what is ready for it alone, and was notified of it."""
    if name not in walk.execute(owners_of(walk.keys)).owners.values():
        says = f"jobs are ready for {name!r} alone, which owns no group: they stand still"
        action = Action("owner", (name,))
        remedy = "the next consumer that takes one owns its groups"
        return [Finding("groups", "owner", walk.keys.queue, name, says, remedy, action=action)]
    if not walk.execute(stuck_owners(walk.keys, [name])):
        return []
    says = f"jobs of its own groups are ready for {name!r}, which waits and was not notified"
    action = Action("look")
    return [Finding("liveness", "own", walk.keys.queue, name, says, "notify it", action=action)]
