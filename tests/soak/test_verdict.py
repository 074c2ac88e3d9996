"""Rules of the soak's verdict, on records as they may come."""

from __future__ import annotations

from typing import Any

import pytest

from rqueue.errors import Undecodable
from rqueue.model.job import parse_value
from tests.soak.causes import Causes
from tests.soak.evidence import gather
from tests.soak.faults.jobs import BODIES, HEADERS
from tests.soak.verdict import charged, suspected


def crashed(at: float, deaths: int, **facts: Any) -> dict[str, Any]:
    """A row of the history: a job was charged for a crash at the end of a lease."""
    ended = {"outcome": "crash", "error": "LeaseEnded", "worker": "w", "written": at}
    counts = {"attempts": 0, "crashes": 0, "deliveries": 1, "deaths": deaths, "lasted": 0.5}
    return {"what": "row", "at": 100.0, "queue": "q", "id": "p-1", **ended, **counts, **facts}


@pytest.mark.parametrize(
    ("row", "right"),
    [
        (crashed(5.0, 2), True),
        (crashed(5.0, 0), False),
        (crashed(5.0, 2, deliveries=0), False),
        (crashed(5.0, 2, error="SIGKILL"), False),
        (crashed(5.0, 0, error="SIGKILL", lasted=0.004), True),
        (crashed(5.0, 0, lasted=0.004), False),
    ],
    ids=[
        "suspected before",
        "at once",
        "never held by another",
        "not by suspicion",
        "killed when it was about to begin",
        "suspected when it was about to begin",
    ],
)
def test_a_charge_of_what_never_began_needs_a_former_suspicion(
    row: dict[str, Any], right: bool
) -> None:
    sent = {"what": "sent", "at": 1.0, "publisher": "p", "number": 1, "queue": "q", "id": "p-1"}
    evidence = gather([sent, row])
    found = list(charged(evidence, Causes(evidence, 3.0)))
    assert bool(found) is not right, found
    assert suspected(evidence) == (row["error"] == "LeaseEnded")


def effect(kind: str, since: float, until: float, *pids: int, **facts: Any) -> dict[str, Any]:
    """What the soak did to processes, or to the way to Redis."""
    times = {"at": until, "since": since, "until": until}
    return {"what": "effect", "kind": kind, "pids": list(pids), **times, **facts}


@pytest.mark.parametrize(
    ("effects", "cause"),
    [
        ([], ""),
        ([effect("away", 17.2, 18.3, scope="all")], ""),
        ([effect("freeze", 16.2, 16.5, 7)], ""),
        (
            [effect("freeze", 16.2, 16.5, 7), effect("away", 17.2, 18.3, scope="all")],
            "one fault after the other",
        ),
        ([effect("freeze", 16.2, 16.5, 8), effect("away", 17.2, 18.3, scope="all")], ""),
        ([effect("freeze", 13.0, 13.5, 7), effect("away", 17.2, 18.3, scope="all")], ""),
        ([effect("away", 16.0, 18.3, scope="all")], "Redis was away for long"),
        ([effect("away", 16.0, 18.3, scope="consumers")], ""),
        ([effect("death", 18.59, 18.6, 7)], "its process was killed"),
        ([effect("death", 18.0, 18.1, 7)], ""),
        (
            [effect("signalled", 18.59, 18.59, 6, signal="SIGQUIT")],
            "its supervisor was asked to stop at once",
        ),
        ([effect("death", 20.2, 20.2, 7)], ""),
        (
            [effect("away", 18.65, 20.3, scope="all"), effect("death", 20.2, 20.2, 7)],
            "its process was killed",
        ),
    ],
    ids=[
        "nothing",
        "a short outage",
        "a short pause",
        "both",
        "another one's pause",
        "a pause long ago",
        "a long outage",
        "an outage elsewhere",
        "a signal on its way",
        "a death long ago",
        "an order on its way",
        "a death when all was settled",
        "a death before anything could be settled",
    ],
)
def test_what_makes_a_job_begin_again(effects: list[dict[str, Any]], cause: str) -> None:
    job = {"publisher": "p", "number": 1, "queue": "q", "id": "p-1", "slot": 0}
    records = [
        {"what": "started", "at": 0.0, "process": 6, "program": "pool-x"},
        {"what": "process", "at": 1.0, "pid": 7, "parent": 6},
        {"what": "process", "at": 1.0, "pid": 9, "parent": 6},
        {"what": "begin", "at": 18.6, "pid": 7, **job},
        {"what": "end", "at": 18.7, "pid": 7, **job},
        {"what": "begin", "at": 20.5, "pid": 9, **job},
    ]
    evidence = gather([*records, *effects])
    (found,) = evidence.jobs.values()
    assert Causes(evidence, 3.0).of_again(*found.begins) == cause


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("header", HEADERS)
def test_what_the_soak_damages_is_no_job(header: bytes, body: bytes) -> None:
    """One that could be read would wait for a worker that knows its task, for ever."""
    with pytest.raises(Undecodable):
        parse_value(header + body)
