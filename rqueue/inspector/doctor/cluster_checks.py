"""Whether the nodes of a Redis Cluster keep what they are given, each of them and all together. One
server is looked at alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import redis

from rqueue.errors import AuthenticationFailed, CommandRefused, ServerError
from rqueue.inspector.doctor.findings import Finding, Severity
from rqueue.inspector.doctor.sentinel_checks import check_primary
from rqueue.inspector.doctor.server_checks import check_server
from rqueue.protocol.cluster_view import ClusterView, OpenSlot
from rqueue.protocol.commands.server import cluster_info, keys_in_slot, setting
from rqueue.protocol.unreachable import silent_server
from rqueue.text.numbers import many
from rqueue.transport.nodes import Node, Nodes, nodes_of
from rqueue.transport.redis_client import execute

STANDSTILL_S = 1.0
"""Seconds after which a slot that is being moved is looked at again: does it?"""


def check_nodes(client: redis.Redis, wait: Callable[[float], None]) -> list[Finding]:
    """Findings that an operator should mend. Raises the server errors where nobody answers."""
    with nodes_of(client) as nodes:
        if not nodes.views and not nodes.missing:
            return _check_one(client)
        found = [_away(nodes, address, error) for address, error in nodes.missing.items()]
        for node in nodes.nodes:
            try:
                found += [
                    _at(node, finding) for finding in check_server(node.client, of_cluster=True)
                ]
                found += _check_node(node)
            except ServerError as error:
                found.append(_away(nodes, node.address, error))
        if nodes.views:
            found += _check_slots(nodes)
            found += _check_moves(nodes, wait)
        return found


def _check_one(client: redis.Redis) -> list[Finding]:
    """One server, or the primary that Sentinels name."""
    if not hasattr(getattr(client, "connection_pool", None), "sentinel_manager"):
        return check_server(client)
    found, answers = check_primary(client)
    return found + check_server(client) if answers else found


def _finding(kind: str, says: str, severity: Severity = "problem") -> Finding:
    return Finding("server", kind, "", "", says, severity=severity)


def primary_away(found: Iterable[Finding]) -> bool:
    """True if no queue can be looked at: the primary that keeps them all gives no answer."""
    return any(one.kind == "primary-away" for one in found)


def unchecked(queue: str, address: str, error: ServerError) -> Finding:
    """That a queue could not be checked, since a server went away: its own at `address`, unless
    the error names the one that it needs."""
    away = f"node {address} does not answer for it: " if not silent_server(error) else ""
    says = f"it could not be checked: {away}{error}"
    return Finding("server", "not-checked", queue, "", says, severity="problem")


def _at(node: Node, finding: Finding) -> Finding:
    return replace(finding, says=f"node {node.address}: {finding.says}")


def _away(nodes: Nodes, address: str, error: ServerError) -> Finding:
    return _finding(
        "node-away",
        f"node {address} of the cluster cannot be asked, nor its queues be seen: {error}"
        f"{_heirs(nodes, address)}",
    )


def _heirs(nodes: Nodes, address: str) -> str:
    """Which slots stand still with a master that is away, and whether a replica could take over, as
    the others see it."""
    for view in nodes.views.values():
        for master in view.masters:
            if str(master.address) == address:
                up = len(view.replicas(master))
                heirs = f"{many(up, 'replica')} can take" if up else "no replica can take"
                return (
                    f"; its {many(master.count, 'slot')} ({_ranges(master.slots)}) are served by"
                    f" nobody meanwhile, and {heirs} its place"
                )
    return ""


def _ranges(slots: Sequence[tuple[int, int]]) -> str:
    first = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in sorted(slots)[:5])
    return f"{first}, and {len(slots) - 5} more ranges" if len(slots) > 5 else first


def _check_node(node: Node) -> Iterator[Finding]:
    state = execute(node.client, cluster_info()).get("cluster_state", "ok")
    if state != "ok":
        yield _at(
            node,
            _finding("cluster-state", f"the cluster's state is '{state}' there: it takes no calls"),
        )
    try:
        coverage = execute(node.client, setting("cluster-require-full-coverage"))
    except (CommandRefused, AuthenticationFailed):
        return  # a hosted one, whose settings are the provider's, or a login without the right
    if coverage == "yes":
        yield _at(
            node,
            _finding(
                "full-coverage",
                "cluster-require-full-coverage is 'yes': while one master is away and not replaced,"
                " the queues of all others stand still too; CONFIG SET"
                " cluster-require-full-coverage no, and into redis.conf",
                "note",
            ),
        )


def _check_slots(nodes: Nodes) -> Iterator[Finding]:
    """Slots that nobody has, masters that are gone or alone, as the nodes see it."""
    unserved = {part for view in nodes.views.values() for part in view.unserved()}
    if unserved:
        yield _finding(
            "slots",
            f"no node serves the slots {_ranges(list(unserved))}: the queues there cannot be used"
            " (redis-cli --cluster fix)",
        )
    seen: set[str] = set()
    for view in nodes.views.values():
        for master in view.masters:
            address = str(master.address)
            if address in seen or address in nodes.missing:
                continue
            seen.add(address)
            if not view.replicas(master):
                yield _finding(
                    "no-replica",
                    f"node {address} has no replica: when it is gone, so are its queues until it"
                    " comes back",
                    "note",
                )


def _check_moves(nodes: Nodes, wait: Callable[[float], None]) -> Iterator[Finding]:
    """Slots on their way: while one moves, the queues in it wait."""
    open_ = {
        (address, slot): _left(nodes, address, slot)
        for address, view in nodes.views.items()
        for slot in view.me.open
    }
    if not open_:
        return
    wait(STANDSTILL_S)
    shown: set[int] = set()
    for (address, slot), left in open_.items():
        if slot.slot in shown:
            continue
        shown.add(slot.slot)
        way = _way(nodes.views[address], address, slot)
        if _left(nodes, address, slot) != left:
            said = f"slot {slot.slot} is being moved {way}: queues in it wait until it has"
            yield _finding("slot-moving", said, "note")
        else:
            yield _finding(
                "slot-open",
                f"slot {slot.slot} is open {way}, and no key of it moves: queues in it stand still"
                " until that is ended (redis-cli --cluster fix)",
            )


def _left(nodes: Nodes, address: str, slot: OpenSlot) -> int:
    client = next(node.client for node in nodes.nodes if node.address == address)
    return execute(client, keys_in_slot(slot.slot))


def _way(view: ClusterView, address: str, slot: OpenSlot) -> str:
    other = view.address_of(slot.other)
    start, end = (other, address) if slot.importing else (address, other)
    return f"from {start} to {end}"
