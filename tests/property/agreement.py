"""Whether what is in Redis is what the model says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from tests.property.model import Model
from tests.support.snapshot import Snapshot


def differences(model: Model, snapshot: Snapshot) -> list[str]:
    """What is not as in the model, in words."""
    return [
        f"{what}: Redis has {there!r}, the model {here!r}"
        for what, there, here in _pairs(model, snapshot)
        if there != here
    ]


def _pairs(model: Model, snapshot: Snapshot) -> Iterator[tuple[str, Any, Any]]:
    values = {id: job.value for id, job in model.jobs.items()}
    values |= {id: f"!{position},{due}".encode() for id, (due, position) in model.marks.items()}
    if snapshot.jobs != values:
        for id in snapshot.jobs.keys() | values.keys():
            yield f"value of {id}", snapshot.jobs.get(id), values.get(id)
    yield (
        "suspicions",
        _suspicions(snapshot.hash("errors")),
        {id: job.suspected for id, job in model.jobs.items() if job.suspected},
    )
    yield (
        "lists",
        snapshot.lists,
        {
            f"{'ready' if kind else 'due'}:{-level}": ids
            for (level, kind), ids in model.lists.items()
            if ids
        },
    )
    yield "turns", _text(snapshot.hash("groups")), model.group_turns
    yield "latest", _text(snapshot.hash("latest")), model.latest
    yield "unique keys", _text(snapshot.hash("unique")), model.unique
    yield "periods", snapshot.scores("periods"), model.periods
    yield "ready heads", [id for id, *_ in snapshot.ready_sets], model.open
    yield (
        "heads",
        {group: [id for id, *_ in some] for group, some in snapshot.behind.items()},
        model.blocked,
    )
    yield "schedule", [(d, -lv, p, i) for i, d, lv, p in snapshot.scheduled], model.scheduled
    yield "returns to", _text(snapshot.hash("returns_to")), model.returns_to
    yield "dead", sorted(snapshot.scores("dead")), sorted(model.dead)
    yield "outgoing", _outgoing(snapshot), model.outgoing
    yield "ended", _letters(snapshot.hash("ended")), model.ended
    yield "ended before", _letters(snapshot.hash("ended:old")), model.older
    yield "history", [(row["id"], row["outcome"]) for row in snapshot.history], model.history
    yield (
        "byte_waiters",
        _text(snapshot.hash("byte_waiters")),
        {id: "\n".join(names) for id, names in model.byte_waiters.items()},
    )
    yield "expiring", snapshot.scores("expiring"), model.timed()
    for word in ("acked", "retried", "rejected", "released", "expired", "displaced"):
        yield word, int(snapshot.meta.get(word, "0")), model.counts[word]
    yield "paused", snapshot.meta.get("paused") == "1", model.paused
    yield "last position", int(snapshot.meta.get("seq", "0")), model.seq
    yield "timer", snapshot.meta.get("timer", ""), model.timer
    yield "consumers", sorted(snapshot.consumers), sorted(model.consumers)
    yield "interested", list(snapshot.scores("interested")), [c.name for c in model.interested()]
    for name, c in model.consumers.items():
        row = snapshot.consumers.get(name, {})
        yield f"state of {name}", row.get("state"), c.state
        yield f"window of {name}", (row.get("jobs"), row.get("bytes")), (str(c.jobs), str(c.room))
        yield f"held by {name}", snapshot.held.get(name, []), c.held
        yield f"notes of {name}", _running(snapshot.hash(f"running:{name}")), c.running
        yield f"wake-ups of {name}", snapshot.wakes.get(name, []), c.wake


def _text(found: dict[bytes, bytes]) -> dict[str, str]:
    return {key.decode(): value.decode() for key, value in found.items()}


def _running(notes: dict[bytes, bytes]) -> dict[str, int]:
    return {id.decode(): int(note.split(b",")[0]) for id, note in notes.items()}


def _suspicions(errors: dict[bytes, bytes]) -> dict[str, list[int]]:
    """The positions of all who were suspected."""
    found: dict[str, list[int]] = {}
    for id, lines in errors.items():
        for error in map(orjson.loads, lines.splitlines()):
            if error.get("kind") == "suspected":
                found.setdefault(id.decode(), []).append(error["position"])
    return found


def _outgoing(snapshot: Snapshot) -> list[str]:
    """In the order in which they left."""
    return [member.split("\n")[2] for member in sorted(snapshot.scores("outgoing"))]


def _letters(records: dict[bytes, bytes]) -> dict[str, str]:
    return {id.decode(): record[:1].decode() for id, record in records.items()}
