"""What must always hold of a queue, as functions over snapshots.

Each returns what is wrong, in words. `of_state` looks at one snapshot and holds at any moment;
`unchanged` compares those before and after a refused call, `tests.support.transitions` steps.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from rqueue.errors import Undecodable
from rqueue.model.envelope import parse_record
from rqueue.model.job import Header, is_mark
from rqueue.model.names import group_text
from tests.support import (
    class_invariants,
    consumer_invariants,
    flow_invariants,
    refusal_invariants,
    room_invariants,
    schedules,
)
from tests.support import limit_invariants as limits
from tests.support import share_invariants as shares
from tests.support import sticky_invariants as sticky
from tests.support import unique_invariants as uniques
from tests.support.snapshot import Snapshot


def of_state(snapshot: Snapshot, accepted: Collection[str] | None = None) -> list[str]:
    """All that one snapshot can show. accepted: every id that the queue ever took, if known."""
    return [
        *conservation(snapshot, accepted),
        *order(snapshot),
        *one_owner(snapshot),
        *consumer_invariants.one_list_each(snapshot),
        *liveness(snapshot),
        *wake_ups(snapshot),
        *credit_account(snapshot),
        *leftovers(snapshot),
        *history_account(snapshot),
        *expiring(snapshot),
        *([] if limits.used(snapshot) or shares.used(snapshot) else turns(snapshot)),
        *shares.of_shares(snapshot),
        *class_invariants.of_classes(snapshot),
        *refusal_invariants.of_refusals(snapshot),
        *sticky.of_owners(snapshot),
        *limits.of_limits(snapshot),
        *latest_values(snapshot),
        *uniques.keys(snapshot, dict(snapshot.places)),
        *flow_invariants.of_flows(snapshot, dict(snapshot.places)),
        *ring(snapshot),
        *schedules.of_schedules(snapshot),
        *room_invariants.room(snapshot, bounded_count(snapshot)),
        *room_invariants.sizes(snapshot, snapshot.places),
    ]


def conservation(snapshot: Snapshot, accepted: Collection[str] | None = None) -> list[str]:
    """1: every accepted job is in exactly one place: scheduled, ready, held, dead, or ended."""
    wrong = []
    where: dict[str, list[str]] = {}
    for id, place in snapshot.places:
        where.setdefault(id, []).append(place)
    for id, found in where.items():
        if len(found) > 1:
            wrong.append(f"job {id} is in {len(found)} places: {', '.join(found)}")
        if id not in snapshot.jobs:
            wrong.append(f"job {id} in {found[0]} has no value")
    marks = 0
    for id, value in snapshot.jobs.items():
        if is_mark(value):
            marks += 1
            if where.get(id, ["nowhere"])[0] not in snapshot.lists:
                wrong.append(f"the mark {id} stands in no list")
        elif id not in where:
            wrong.append(f"job {id} has a value and no place")
        elif snapshot.header(id) is None:
            wrong.append(f"job {id} has an unreadable value {value[:40]!r}")
        elif id in snapshot.records and "dead" not in where[id]:
            wrong.append(f"job {id} is in {where[id][0]} and has a record of its end")
    if marks != int(snapshot.meta.get("marked", "0")):
        wrong.append(f"meta says {snapshot.meta.get('marked')} marks, there are {marks}")
    for id in accepted or ():
        if is_mark(snapshot.jobs.get(id, b"!")) and id not in snapshot.records:
            wrong.append(f"job {id} was accepted and is nowhere")
    for id, record in snapshot.records.items():
        try:
            parse_record(record)
        except Undecodable as error:
            wrong.append(f"the record of {id}: {error}")
    return wrong


def expiring(snapshot: Snapshot) -> list[str]:
    """Jobs that wait with a time to live are noted where it ends, and no others."""
    grouped = [snapshot.ready_heads, *snapshot.behind.values(), *snapshot.own.values()]
    deferred = [id.decode() for id in snapshot.hash("deferred")]
    lists = [*snapshot.lists.values(), deferred]
    places = [*lists, *([id for id, *_ in some] for some in grouped)]
    waiting = [(id, snapshot.header(id)) for ids in places for id in ids]
    timed = {id: float(head.expires_ms) for id, head in waiting if head and head.expires_ms}
    noted = snapshot.scores("expiring")
    return [
        f"job {id} expires at {timed.get(id)}, noted is {noted.get(id)}"
        for id in sorted(timed.keys() | noted.keys())
        if timed.get(id) != noted.get(id)
    ]


def bounded_count(snapshot: Snapshot) -> int:
    """The jobs that the limit of a bounded queue counts: each is looked for in its place."""
    held = snapshot.meta.get("count_held") == "1"
    return sum(
        place != "dead"
        and (held or not place.startswith("held:"))
        and not is_mark(snapshot.jobs.get(id, b""))
        for id, place in snapshot.places
    )


def order(snapshot: Snapshot) -> list[str]:
    """2: due times and positions only grow along a list, and a job stands in its own one."""
    wrong = []
    levels = snapshot.meta.get("levels", "").split(",") if snapshot.meta.get("levels") else []
    if levels != sorted(set(levels), key=int, reverse=True):
        wrong.append(f"levels are {levels}")
    for key, ids in snapshot.lists.items():
        kind, _, level = key.partition(":")
        if level not in levels:
            wrong.append(f"{key} is not among the levels {levels}")
        last = None
        for id in ids:
            value = snapshot.jobs.get(id, b"")
            if is_mark(value):
                position, due = map(int, value[1:].split(b","))
            elif (head := snapshot.header(id)) is not None:
                position, due = head.position, head.due_ms
                if head.level != int(level):
                    wrong.append(f"job {id} of level {head.level} stands in {key}")
            else:
                continue  # conservation says what is wrong
            if (due > 0) != (kind == "due"):
                wrong.append(f"job {id}, due {due}, stands in {key}")
            if last is not None and (due, position) <= last:
                wrong.append(f"in {key} {id} at {(due, position)} follows {last}")
            last = due, position
    for id, _, its_level, position in snapshot.scheduled:
        head = snapshot.header(id)
        if head is not None and (head.level, head.position) != (its_level, position):
            wrong.append(f"job {id} at {head.position} has the place {position} in the schedule")
    return wrong


def one_owner(snapshot: Snapshot) -> list[str]:
    """3: what is held is held by consumers that are registered (and by one: see conservation)."""
    leases = snapshot.scores("consumers")
    wrong = [
        f"{name} holds {len(ids)} jobs and is not registered"
        for name, ids in snapshot.held.items()
        if name not in leases
    ]
    if set(leases) != set(snapshot.consumers):
        wrong.append(f"leases of {sorted(leases)}, consumers {sorted(snapshot.consumers)}")
    terms = [row["term"] for row in snapshot.consumers.values() if "term" in row]
    if len(terms) != len(set(terms)):
        wrong.append(f"two consumers share a term: {terms}")
    return wrong


def waiting(snapshot: Snapshot) -> list[str]:
    """Ids of jobs that anybody could take now, best first."""
    found = []
    for ids in snapshot.lists.values():
        for id in ids:
            if snapshot.header(id) is not None:
                found.append((*rank(snapshot, id), id))
    sets = [*snapshot.classes.values(), *snapshot.refused.values(), *snapshot.own.values()]
    for members in (snapshot.ready_heads, *sets):
        found += [(*rank(snapshot, id), id) for id, *_ in members]
    return [id for *_, id in sorted(found)]


def rank(snapshot: Snapshot, id: str) -> tuple[int, int, Any, int]:
    """Its place in the queue's order."""
    head = snapshot.header(id)
    assert head is not None
    if head.sort:
        noted = snapshot.jobs[id].partition(b"|s")[2]
        return -head.level, 2, re.split(b"[|;]", noted)[0], head.position
    return -head.level, not head.due_ms, head.due_ms, head.position


def liveness(snapshot: Snapshot) -> list[str]:
    """4: work that an interested consumer could take implies a notified one, or a timer."""
    if snapshot.meta.get("paused") == "1":
        return []
    interested = snapshot.scores("interested")
    if not interested or snapshot.scores("notified"):
        return []
    wrong = []
    asked_apart = any(its.used(snapshot) for its in (class_invariants, refusal_invariants, sticky))
    if left := [] if asked_apart else waiting(snapshot):
        wrong.append(f"{left} wait, {sorted(interested)} are interested, nobody is notified")
    if snapshot.scheduled and snapshot.meta.get("timer") not in interested:
        wrong.append(
            f"{len(snapshot.scheduled)} are scheduled, {sorted(interested)} are interested, and "
            f"the timer is with {snapshot.meta.get('timer')}"
        )
    return wrong


def wake_ups(snapshot: Snapshot) -> list[str]:
    """5, at rest: one unread wake-up at most, and none for a consumer that waits to be woken."""
    wrong = []
    interested = snapshot.scores("interested")
    for name, words in snapshot.wakes.items():
        pulls = words.count(b"w")
        if pulls > 1:
            wrong.append(f"{name} has {pulls} unread wake-ups")
        if pulls and name in interested:
            wrong.append(f"{name} is interested and has an unread wake-up")
        # the end of a queue wakes those that wait for work, by a key with a lifetime
        over = "deleted" in snapshot.meta and words == [b"w"]
        if name not in snapshot.consumers and not over:
            wrong.append(f"{name} has the unread {words} and is not registered")
    for name in interested:
        if int(snapshot.consumers[name]["jobs"]) <= len(snapshot.held.get(name, ())):
            wrong.append(f"{name} is interested and has no credit")
    return wrong


def credit_account(snapshot: Snapshot) -> list[str]:
    """6, the account: bytes counted as held are those of the jobs held."""
    wrong = []
    for name, row in snapshot.consumers.items():
        held = snapshot.held.get(name, [])
        size = sum(len(snapshot.jobs.get(id, b"")) for id in held)
        if held and int(row["bytes"]) > 0 and int(row["held_bytes"]) != size:
            wrong.append(f"{name} holds {size} bytes, counted are {row['held_bytes']}")
    return wrong


def leftovers(snapshot: Snapshot) -> list[str]:
    """Nothing is kept about jobs that are gone, or places that they left."""
    wrong = []
    scheduled = {id for id, *_ in snapshot.scheduled}
    dead = set(snapshot.scores("dead"))
    for key, allowed in (
        ("errors", set(snapshot.jobs)),
        ("causes", dead),
        ("parked", scheduled),
        ("returns_to", scheduled),
        ("awaited", set(snapshot.jobs)),
    ):
        for raw in snapshot.hash(key):
            if raw.decode() not in allowed:
                wrong.append(f"{key} still knows {raw.decode()}")
    for name in snapshot.named("running:"):
        if name not in snapshot.consumers:
            wrong.append(f"it is noted what {name} runs, which is not registered")
    causes = snapshot.hash("causes")
    return wrong + [f"dead letter {id} has no cause" for id in dead if id.encode() not in causes]


def history_account(snapshot: Snapshot) -> list[str]:
    """The stream holds as many rows as meta counts."""
    entries = snapshot.keys.get("history", [])
    rows = sum(int(fields[b"n"]) for _, fields in entries)
    counted = int(snapshot.meta.get("history_rows", "0"))
    return [] if rows == counted else [f"history has {rows} rows, counted are {counted}"]


def turns(snapshot: Snapshot) -> list[str]:
    """Of a group one job at most is ready, held, or waits to come back; it has the turn, and the
    others stand behind."""
    wrong = []
    turn = {group.decode(): id.decode() for group, id in snapshot.hash("groups").items()}
    where = dict(snapshot.places)
    for group, id in turn.items():
        place = where.get(id, "nowhere")
        if place not in ("heads", "scheduled") and not place.startswith(("held:", "own:")):
            wrong.append(f"the turn of {group} is with {id}, which is in {place}")
    for id, place in where.items():
        head = snapshot.header(id)
        group = (head.bucket or group_text(head.group)) if head else ""
        mine = turn.get(group) == id
        if group and place.startswith(("ready:", "due:")):
            wrong.append(f"job {id} of {group} stands in {place}")
        if not group and place.startswith("group"):
            wrong.append(f"job {id} without a group stands in {place}")
        if group and (place == "heads" or place.startswith(("held:", "own:"))) and not mine:
            wrong.append(f"job {id} is in {place}, the turn of {group} is with {turn.get(group)}")
        if place.startswith("group:") and (mine or group not in turn):
            wrong.append(f"job {id} is blocked, the turn of {group} is with {turn.get(group)}")
        if place.startswith("group:") and head and (place != f"group:{group}" or head.due_ms):
            wrong.append(f"job {id} of {group}, due {head.due_ms}, stands in {place}")
    behind = sum(map(len, snapshot.behind.values()))
    if behind != int(snapshot.meta.get("blocked", "0")):
        wrong.append(f"{behind} jobs are blocked, counted are {snapshot.meta.get('blocked')}")
    if (found := sorted(snapshot.behind)) != (known := sorted(snapshot.scores("blocked"))):
        wrong.append(f"groups that wait: {found}, known are {known}")
    for place, members in (("heads", snapshot.ready_heads), *snapshot.behind.items()):
        for id, score, level, position in members:
            head = snapshot.header(id)
            if head is None:
                continue
            said = position if place != "heads" else _score(head)
            if (level, position, score) != (head.level, head.position, said):
                wrong.append(f"job {id} at {head} stands in {place} as {(score, level, position)}")
    return wrong


def ring(snapshot: Snapshot) -> list[str]:
    """No more jobs, or bytes, are ready than the ring holds."""
    most, ready = int(snapshot.meta.get("ring_jobs", "0")), waiting(snapshot)
    wrong = [f"{ready} are ready in a ring of {most}"] if 0 < most < len(ready) else []
    most_bytes = int(snapshot.meta.get("ring_bytes", "0"))
    if 0 < most_bytes < (there := int(snapshot.meta.get("waiting_bytes", "0"))):
        wrong.append(f"{there} bytes are ready in a ring of {most_bytes}")
    return wrong


def latest_values(snapshot: Snapshot) -> list[str]:
    """Of a key its latest job alone waits, beside the lists; nothing is kept of what is gone."""
    wrong = []
    latest = {key.decode(): id.decode() for key, id in snapshot.hash("latest").items()}
    dead = snapshot.scores("dead")
    for key, id in latest.items():
        head = snapshot.header(id)
        if head is None or group_text(head.key) != key or id in dead:
            wrong.append(f"the latest of {key} is {id}, which is {head}")
    for id, place in snapshot.places:
        head = snapshot.header(id)
        if not head or not head.key:
            continue
        if place.startswith(("ready:", "due:")):
            wrong.append(f"job {id} of key {head.key} stands in {place}")
        back = place == "heads" or (place == "scheduled" and head.deliveries)
        if back and latest.get(group_text(head.key)) != id:
            wrong.append(f"job {id} of key {head.key} waits in {place}, the latest is {latest}")
    return wrong


def _score(head: Header) -> int:
    if head.sort:
        return (10 - head.level) * 10**14 - 1
    return (9 - head.level) * 10**14 + (head.due_ms or 5 * 10**13 + head.position)


def unchanged(before: Snapshot, after: Snapshot) -> list[str]:
    """7: a refused operation leaves every key as it was."""
    wrong = []
    for key in before.keys.keys() | after.keys.keys():
        if before.keys.get(key) != after.keys.get(key):
            wrong.append(f"{key} was {before.keys.get(key)!r}, is {after.keys.get(key)!r}")
    return wrong
