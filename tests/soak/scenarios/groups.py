"""Groups: one job of each at a time, in order, also through failures and crashes."""

from __future__ import annotations

from rqueue.tasks.options import Options
from tests.soak.cases import at_once, one_after_another
from tests.soak.publisher import Publisher
from tests.soak.scenario import Scenario

GROUPS = 3


def enqueue(publisher: Publisher) -> None:
    """A job of a group; some fail once, some take their process along."""
    group = f"{publisher.name}/{publisher.random.randrange(GROUPS)}"
    draw = publisher.random.random()
    how = "fail" if draw < 0.1 else ""
    publisher.send("groups", Options(group=group), how, group=group)


SCENARIO = Scenario(
    "groups",
    {"groups": {"kind": "groups"}},
    enqueue,
    {
        "two of a group at once": at_once("groups", 1, lambda job: job.facts["group"]),
        "out of order": one_after_another("groups", lambda job: job.facts["group"]),
    },
    rate=4,
)
