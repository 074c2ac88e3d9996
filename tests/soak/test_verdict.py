"""Rules of the soak's verdict, on records as they may come."""

from __future__ import annotations

from typing import Any

import pytest

from tests.soak.causes import Causes
from tests.soak.evidence import gather
from tests.soak.verdict import charged, suspected


def crashed(at: float, deaths: int, **facts: Any) -> dict[str, Any]:
    """A row of the history: a job was charged for a crash at the end of a lease."""
    told = {"outcome": "crash", "error": "LeaseEnded", "worker": "w", "told": at}
    counts = {"attempts": 0, "crashes": 0, "deliveries": 1, "deaths": deaths}
    return {"what": "row", "at": 100.0, "queue": "q", "id": "p-1", **told, **counts, **facts}


@pytest.mark.parametrize(
    ("row", "right"),
    [
        (crashed(5.0, 2), True),
        (crashed(5.0, 0), False),
        (crashed(5.0, 2, deliveries=0), False),
        (crashed(5.0, 2, error="SIGKILL"), False),
    ],
    ids=["suspected before", "at once", "never held by another", "not by suspicion"],
)
def test_a_charge_of_what_never_began_needs_a_former_suspicion(
    row: dict[str, Any], right: bool
) -> None:
    sent = {"what": "sent", "at": 1.0, "publisher": "p", "number": 1, "queue": "q", "id": "p-1"}
    evidence = gather([sent, row])
    found = list(charged(evidence, Causes(evidence, 3.0)))
    assert bool(found) is not right, found
    assert suspected(evidence) == (row["error"] == "LeaseEnded")
