"""What must always hold of jobs that wait for others."""

from __future__ import annotations

from collections.abc import Mapping

from rqueue.model.envelope import parse_record
from rqueue.model.job import is_mark, parse_value
from rqueue.model.parents import Parents
from tests.support.snapshot import Snapshot


def parents_of(snapshot: Snapshot, id: str) -> Parents | None:
    """What a live job waits for, or waited for, by its header."""
    value = snapshot.jobs.get(id, b"!")
    if is_mark(value):
        return None
    return Parents.parse(parse_value(value)[0].waits)


def bits_of(snapshot: Snapshot, id: str) -> set[int]:
    """Places of the parents of whose end a job without results has heard."""
    heard: bytes = snapshot.keys.get(f"heard:{id}", b"")
    return {
        8 * at + bit for at, byte in enumerate(heard) for bit in range(8) if byte >> 7 - bit & 1
    }


def of_flows(snapshot: Snapshot, where: Mapping[str, str]) -> list[str]:
    """Who waits has parents that have not all ended, or more may come, and each that has is
    counted, once; nothing is kept for who does not wait. where: id -> place."""
    wrong = []
    waits = {id.decode(): int(total) for id, total in snapshot.hash("deferred").items()}
    for key in ("gathered:", "heard:"):
        for id in snapshot.named(key):
            if id not in waits:
                wrong.append(f"{key}{id} is kept, and {id} does not wait")
    for id in snapshot.hash("stops"):
        if id.decode() not in waits:
            wrong.append(f"{id.decode()} is to end, and does not wait")
    unsealed = snapshot.scores("unsealed")
    for id in unsealed:
        if id not in waits:
            wrong.append(f"the producer of {id} is waited for, and {id} does not wait")
    for id, lines in snapshot.hash("edges").items():
        if id.decode() not in snapshot.jobs:
            wrong.append(f"{lines!r} wait for {id.decode()}, which is not there")
    for id, total in waits.items():
        parents = parents_of(snapshot, id)
        if parents is not None and parents.open:
            parents = parents._replace(total=total)
            if id not in unsealed:
                wrong.append(f"the stream of {id} goes on, and its producer is not waited for")
        elif id in unsealed:
            wrong.append(f"{id} is sealed, and its producer is waited for")
        if parents is None or parents.total != total:
            wrong.append(f"{id} waits for {total}, its header says {parents}")
            continue
        gathered = {int(place) for place in snapshot.hash(f"gathered:{id}")}
        if parents.takes == "nothing":
            if gathered:
                wrong.append(f"what its parents left is kept for {id}, which does not want it")
            gathered = bits_of(snapshot, id)
        if len(gathered) == total and id not in unsealed:
            wrong.append(f"{id} waits, and its {total} parents have ended")
        for place, parent in enumerate(parents.of(id)):
            record = snapshot.records.get(parent)
            marked = is_mark(snapshot.jobs.get(parent, b"!"))
            alive = not marked and where.get(parent, "dead") != "dead"
            # one that counted as a failure may have been requeued
            again = parents.on_failure in ("continue", "failed")
            if alive and place in gathered and not again:
                wrong.append(f"{parent} is in {where[parent]}, and {id} has counted its end")
            dead = record is not None and parse_record(record).state == "dead"
            over = record is not None and not alive and place not in gathered
            if (
                over
                and id.encode() not in snapshot.hash("stops")
                and not (dead and parents.on_failure == "wait")
            ):
                wrong.append(f"{parent} has ended, and {id} waits for it")
    return wrong
