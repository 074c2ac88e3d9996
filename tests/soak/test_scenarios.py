"""Every rule of every scenario finds the wrong that it is for: it is planted into records that are
right without it, as these come from a soak."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any, NamedTuple

import pytest

from tests.soak.causes import Causes
from tests.soak.evidence import gather
from tests.soak.programs import ROOT
from tests.soak.records import Record
from tests.soak.scenarios import SCENARIOS, choose, ttl
from tests.soak.verdict import COUNTED, RULES, judge

POOL, WORKER, OTHER = 6, 7, 9
PUBLISHER = "p"
STARTED: list[Record] = [
    {"what": "started", "at": 0.0, "process": POOL, "program": "pool-new", "pid": 1},
    {"what": "process", "at": 1.0, "pid": WORKER, "parent": POOL},
    {"what": "process", "at": 1.0, "pid": OTHER, "parent": POOL},
]


def known(number: int, by: str = PUBLISHER) -> dict[str, Any]:
    """How a job is named in all its records."""
    return {"publisher": by, "number": number, "id": f"{by}-{number}"}


def sent(scenario: str, number: int, at: float, answer: str = "accepted", **facts: Any) -> Any:
    """A job was sent, and a moment later its producer had the answer."""
    queue = facts.pop("queue", "") or next(iter(SCENARIOS[scenario].queues))
    its = {**known(number, facts.pop("by", PUBLISHER)), "pid": 2, "queue": queue}
    yield {"what": "sent", "at": at, "scenario": scenario, **its, **facts}
    if answer:
        yield {"what": answer, "at": at + 0.01, **its}


def run(
    number: int, at: float, ended: float = 0.0, pid: int = WORKER, by: str = PUBLISHER, **facts: Any
) -> Any:
    """A job began, and ran to its end, if there was one."""
    its = {**known(number, by), "pid": pid, "queue": "q", "slot": 0}
    yield {"what": "begin", "at": at, **its, **facts}
    if ended:
        yield {"what": "end", "at": ended, **its}


def row(number: int, outcome: str, at: float, queue: str = "q", by: str = PUBLISHER) -> Record:
    """How a job ended, in the history of a queue."""
    ended = {"what": "row", "at": 100.0, "id": f"{by}-{number}", "queue": queue, "pid": 1}
    counted = {"attempts": 0, "crashes": 0, "deliveries": 0, "deaths": 0}
    its = {"error": "", "worker": "w", "lasted": 1.0, **counted}
    return {**ended, "outcome": outcome, "written": at, **its}


def noted(what: str, at: float, **facts: Any) -> Record:
    """Any other record."""
    return {"what": what, "at": at, "pid": WORKER, **facts}


Part = Record | Iterable[Record]


class Plant(NamedTuple):
    """What happened, and what happened instead where it went wrong; the words of the verdict."""

    scenario: str
    rule: str
    before: Sequence[Part]
    right: Sequence[Part]
    wrong: Sequence[Part]
    says: str


def records(*parts: Part) -> list[Record]:
    """All records of a story, in the order of time."""
    return sorted([*STARTED, *flat(parts)], key=lambda record: record["at"])


def many(scenario: str, *numbers: int, **facts: Any) -> list[Record]:
    """Jobs that were sent one after the other."""
    return [record for number in numbers for record in sent(scenario, number, number, **facts)]


def one_at_a_time(scenario: str, rule: str, **facts: Any) -> Plant:
    """Two jobs that may not run at once."""
    before = [*many(scenario, 1, 2, **facts), *run(1, 10.0, 11.0)]
    return Plant(scenario, rule, before, run(2, 11.1, 12.0), run(2, 10.5, 12.0, OTHER), "began")


def in_a_row(scenario: str) -> Plant:
    """Two jobs of which the second begins when the first has ended."""
    facts = {"group": "g"}
    before = [*many(scenario, 1, 2, **facts), *run(1, 10.0, 11.0)]
    says = "p/2 (id p-2, queue"
    return Plant(scenario, "out of order", before, run(2, 11.1, 12.0), run(2, 10.9, 12.0), says)


def early(scenario: str) -> Plant:
    """A job that is due after half a second."""
    before = many(scenario, 10, delay=500)
    return Plant(scenario, "too early", before, run(10, 10.5), run(10, 10.4), "0.100 s too early")


def a_round(scenario: str, rule: str, facts: Sequence[dict[str, Any]], wrong: Sequence[int]) -> Any:
    """Jobs that begin in the order of their numbers, or in a wrong one."""
    before = [
        record
        for number, its in enumerate(facts, 1)
        for record in sent(scenario, number, number / 100, round="r", **its)
    ]
    right = [r for place in range(1, len(facts) + 1) for r in run(place, 10 + place)]
    planted = [r for place, number in enumerate(wrong) for r in run(number, 10 + place)]
    return Plant(scenario, rule, before, right, planted, "r: ")


def asked(rule: str, answer: str, began: float) -> Plant:
    """A job that is cancelled, and does not begin; or does, so many seconds later."""
    before = [*many("cancel", 1), noted("cancelled", 10.0, id="p-1", answer=answer)]
    return Plant("cancel", rule, before, [], run(1, 10 + began), f"{began:.3f} s after")


def flow(scenario: str, jobs: int) -> list[Record]:
    """The jobs of a workflow, sent."""
    return many(scenario, *range(1, jobs + 1), flow="f")


def link(number: int, at: float, ended: float = 0.0, **facts: Any) -> Any:
    """One of a chain that got what those before returned."""
    return run(number, at, ended, before=facts.get("before", list(range(1, number))))


def members(*ended: float) -> list[Record]:
    """Four members that ran."""
    return [r for number, at in enumerate(ended, 1) for r in run(number, at - 0.5, at)]


def tick(ms: int, at: float, ended: float = 0.0, wall: float = 0.0, name: str = "interval") -> Any:
    """The job of a tick."""
    its = {"by": f"cron.{name}", "made": "cron", "wall": wall or ms / 1000}
    return run(ms, at, ended, **its)


def step(what: str, at: float, value: int = 5, pid: int = WORKER) -> Record:
    """A step was done, or is kept."""
    return {"what": what, "at": at, **known(1), "pid": pid, "step": "a", "value": value}


def followed(*attempts: str) -> list[Record]:
    """Followers of job 1 that came from these attempts."""
    found = []
    for attempt in attempts:
        facts = {"by": attempt, "parent": [PUBLISHER, 1], "tx": attempt}
        for place in (0, 1):
            found += sent("transactions", place, 10.2, "", **facts)
            found += run(place, 11.0, 11.1, by=attempt)
    return found


SHARES = [{"share": share} for share in ["gold", "free", "trial", "gold", "gold"] * 3]
GREEDY = [n for n, its in enumerate(SHARES, 1) if its["share"] == "gold"]
PATIENT = [n for n, its in enumerate(SHARES, 1) if its["share"] != "gold"]

PLANTS = [
    Plant(
        "alternate",
        "dead and not handed on once",
        [*many("alternate", 1, how="reject-alternate"), row(1, "dead", 10.0, "alternate")],
        [row(1, "ack", 11.0, "alternate_dead")],
        [],
        "ended there as []",
    ),
    Plant(
        "bounded",
        "more than the limit",
        [],
        [noted("looked at bounded", 10.0, queue="bounded_block", jobs=8)],
        [noted("looked at bounded", 10.0, queue="bounded_block", jobs=9)],
        "9 of 8 jobs",
    ),
    asked("cancelled, and ran", "ENDED", 0.5),
    asked("cancelled, and began", "REQUESTED", 3.5),
    asked("not cancelled, and began", "NONE", 0.1),
    Plant(
        "chains",
        "out of order",
        [*flow("chains", 2), *link(1, 10.0, 11.0)],
        link(2, 11.1),
        link(2, 10.9),
        "began before the end of p/1",
    ),
    Plant(
        "chains",
        "other results",
        [*flow("chains", 2), *link(1, 10.0, 11.0)],
        link(2, 11.1),
        link(2, 11.1, before=[3]),
        "got [3], not [1]",
    ),
    Plant(
        "chains",
        "torn",
        [*flow("chains", 2), *link(1, 10.0, 11.0)],
        link(2, 11.1, 12.0),
        [],
        "done are [True, False]",
    ),
    Plant(
        "chords",
        "fired too early",
        [*flow("chords", 5), *members(11.0, 11.0, 11.0, 12.0)],
        run(5, 12.1, results=[1, 2, 3, 4]),
        run(5, 11.5, results=[1, 2, 3, 4]),
        "before the end of ['p/4",
    ),
    Plant(
        "chords",
        "other results",
        [*flow("chords", 5), *members(11.0, 11.0, 11.0, 11.0)],
        run(5, 12.0, results=[1, 2, 3, 4]),
        run(5, 12.0, results=[1, 2, 4, 3]),
        "got [1, 2, 4, 3]",
    ),
    Plant(
        "chords",
        "not fired once",
        [*flow("chords", 5), *members(11.0, 11.0, 11.0, 11.0)],
        [row(5, "ack", 12.0)],
        [],
        "ended as []",
    ),
    Plant(
        "clock",
        "not done once",
        many("clock", 1),
        [row(1, "ack", 10.0)],
        [row(1, "ack", 10.0), row(1, "ack", 20.0)],
        "ended as ['ack', 'ack']",
    ),
    Plant(
        "cron",
        "tick missed",
        tick(1000, 10.0),
        tick(2000, 11.0),
        tick(3000, 12.0),
        "2000 ms after the one before",
    ),
    Plant(
        "cron", "tick early", [], tick(9000, 10.0), tick(9000, 10.0, wall=8.9), "0.100 s too early"
    ),
    Plant(
        "cron",
        "tick twice",
        [*tick(9000, 10.0), row(9000, "ack", 10.1, by="cron.interval")],
        [],
        [row(9000, "ack", 10.2, by="cron.interval")],
        "ended 2 times",
    ),
    Plant(
        "cron",
        "ticks overlap",
        tick(1000, 10.0, 12.0, name="skipping"),
        tick(3000, 12.1, name="skipping"),
        tick(2000, 11.0, name="skipping"),
        "began before the end",
    ),
    early("delays"),
    Plant(
        "deploy",
        "old code after a deploy",
        [
            *many("deploy", 1, task="soak.new"),
            noted("deployed", 5.0, program="pool-new", version=2),
        ],
        run(1, 10.0, version=2, born=6.0),
        run(1, 10.0, version=1, born=6.0),
        "version 1 in pool-new 7",
    ),
    Plant(
        "deploy",
        "a new task and old code",
        many("deploy", 1, task="soak.new"),
        run(1, 10.0, version=2, born=6.0),
        run(1, 10.0, version=0, born=6.0),
        "run by [0]",
    ),
    one_at_a_time("groups", "two of a group at once", group="g"),
    in_a_row("groups"),
    a_round("hold", "place lost", [{}] * 3, [1, 3, 2]),
    early("hold"),
    Plant(
        "last_value",
        "the newest is lost",
        [*many("last_value", 1, 2, key="k"), row(1, "displaced", 3.0)],
        run(2, 10.0, 11.0),
        [],
        "p/2 (id p-2, queue last_value) is the newest",
    ),
    Plant(
        "last_value",
        "an older one behind a newer one",
        [*many("last_value", 1, 2, key="k"), *run(2, 10.0, 11.0)],
        [],
        run(1, 12.0),
        "p/1 (id p-1, queue last_value) after p/2",
    ),
    Plant(
        "last_value",
        "displaced by nobody",
        many("last_value", 1, 2, key="k"),
        [row(1, "displaced", 3.0)],
        [row(2, "displaced", 3.0)],
        "p/2",
    ),
    Plant(
        "limits",
        "more at once than the limit",
        [
            *[r for n in range(1, 5) for r in sent("limits", n, n, tenant=str(n))],
            *[r for n in range(1, 4) for r in run(n, 10.0 + n / 10, 12.0)],
        ],
        run(4, 12.1, 13.0),
        run(4, 11.0, 13.0),
        "p/4 (id p-4, queue limits) began beside p/1",
    ),
    one_at_a_time("limits", "two of a key at once", tenant="t"),
    Plant(
        "move",
        "moved and not ended once",
        [*many("move", 1), row(1, "moved", 10.0, "move_a")],
        [row(1, "ack", 11.0, "move_b")],
        [row(1, "ack", 11.0, "move_a"), row(1, "ack", 11.0, "move_b")],
        "ended in ['move_a', 'move_b']",
    ),
    early("move"),
    Plant(
        "outbox",
        "not charged once",
        [*many("outbox", 1), noted("order", 90.0, id="p-1"), noted("charged", 90.0, id="p-1")],
        [],
        [noted("charged", 90.0, id="p-1")],
        "charged 2 times, not 1",
    ),
    Plant(
        "outbox",
        "commit lost",
        many("outbox", 1),
        [noted("order", 90.0, id="p-1")],
        [],
        "in the database: False",
    ),
    Plant(
        "pause",
        "delivered by a paused queue",
        [],
        [noted("looked at paused", 10.0, held=[3, 2, 2])],
        [noted("looked at paused", 10.0, held=[3, 2, 3])],
        "[3, 2, 3]",
    ),
    a_round("priorities", "a lower one first", [{"level": n} for n in (9, 4, 4, 0)], [1, 4, 2, 3]),
    Plant(
        "rates",
        "faster than the rate",
        many("rates", 1, 2, 3, bucket="b"),
        [r for n in (1, 2, 3) for r in run(n, 1.0 + n / 5)],
        [r for n in (1, 2, 3) for r in run(n, 1.0 + n / 100)],
        "number 3 0.170 s early",
    ),
    Plant(
        "ring",
        "more than it holds",
        [],
        [noted("looked at ring", 10.0, ready=4)],
        [noted("looked at ring", 10.0, ready=5)],
        "5 ready in a ring of 4",
    ),
    Plant(
        "ring",
        "displaced without need",
        many("ring", 1, 2, 3, 4, 5),
        [row(1, "displaced", 10.0)],
        [row(3, "displaced", 10.0)],
        "2 behind it",
    ),
    one_at_a_time("shards", "two of a group at once", group="g"),
    in_a_row("shards"),
    a_round("shares", "one share ahead", SHARES, [*GREEDY, *PATIENT]),
    Plant(
        "steps",
        "done again though kept",
        [*many("steps", 1), *run(1, 10.0), step("did", 10.1), step("kept", 10.2)],
        run(1, 11.0, 12.0, OTHER),
        [*run(1, 11.0, 12.0, OTHER), step("did", 11.1, 6, OTHER)],
        "step a again after 0.900 s",
    ),
    Plant(
        "steps",
        "another result",
        [*many("steps", 1), *run(1, 10.0), step("kept", 10.2)],
        [step("kept", 11.2, 5, OTHER)],
        [step("kept", 11.2, 6, OTHER)],
        "step a returned [5, 6]",
    ),
    in_a_row("sticky"),
    Plant(
        "sticky",
        "two owners",
        [*many("sticky", 1, 2, group="g"), *run(1, 10.0, 11.0), *run(2, 12.0, 13.0, OTHER)],
        [],
        [*sent("sticky", 3, 3.0, group="h"), *run(3, 14.0, 15.0)],
        "began in 9 at 12.000, and 7 was there until 14.000",
    ),
    Plant(
        "streams",
        "sealed too early",
        [*flow("streams", 3), *members(11.0, 12.0)],
        run(3, 12.1),
        run(3, 11.5),
        "before the end of ['p/2",
    ),
    Plant(
        "streams",
        "not complete",
        [*flow("streams", 3), *members(11.0, 12.0)],
        run(3, 12.1, 12.2),
        [],
        "not done are ['p/3",
    ),
    Plant(
        "transactions",
        "a part of a transaction",
        [*many("transactions", 1, 2, tx="t"), *run(1, 10.0, 11.0)],
        run(2, 10.0, 11.0),
        [],
        "only ['p-1']",
    ),
    Plant(
        "transactions",
        "not followed once",
        [*many("transactions", 1, followed=True), *run(1, 10.0, 11.0)],
        followed("a"),
        followed("a", "b"),
        "followed by those of ['a', 'b']",
    ),
    Plant(
        "ttl",
        "begun after its end",
        many("ttl", 1, ttl=1.0),
        run(1, 2.0 + ttl.LATE_S),
        run(1, 2.1 + ttl.LATE_S),
        f"{ttl.LATE_S + 0.09:.3f} s after its end",
    ),
    Plant(
        "ttl",
        "expired too early",
        many("ttl", 1, ttl=1.0),
        [row(1, "expired", 2.0)],
        [row(1, "expired", 1.5)],
        "0.500 s too early",
    ),
    Plant(
        "unique",
        "two of a key alive",
        [*sent("unique", 1, 1.0, key="k"), *run(1, 1.5, 3.0)],
        sent("unique", 4, 4.0, key="k"),
        sent("unique", 2, 2.0, key="k"),
        "stored while p/1",
    ),
    one_at_a_time("unique", "two of a key at once", key="k"),
    Plant(
        "unique",
        "refused and yet begun",
        [*sent("unique", 1, 1.0, "", key="k"), noted("conflict", 1.1, **known(1), other="p-0")],
        [],
        run(1, 10.0),
        "p-0 had its key",
    ),
]


def found(plant: Plant, story: Iterable[Record]) -> list[str]:
    """What a rule says of a story."""
    evidence = gather(records(story))
    verdict = judge(evidence, 3.0, choose([plant.scenario]))
    return verdict.wrong[f"{plant.scenario}: {plant.rule}"]


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: f"{plant.scenario}: {plant.rule}")
def test_what_is_planted_is_found(plant: Plant) -> None:
    before = list(flat(plant.before))
    assert found(plant, [*before, *flat(plant.right)]) == []
    said = found(plant, [*before, *flat(plant.wrong)])
    assert said, "nothing is found"
    assert plant.says in said[0]


def flat(parts: Iterable[Part]) -> Iterable[Record]:
    """All records of the parts of a story."""
    for part in parts:
        if isinstance(part, dict):
            yield part
        else:
            yield from part


def test_every_rule_of_every_scenario_has_its_plant() -> None:
    planted = {(plant.scenario, plant.rule) for plant in PLANTS}
    assert planted == {(name, rule) for name, its in SCENARIOS.items() for rule in its.judge}


OF_ALL = {
    "ran, and its end is unknown": run(1, 10.0, 11.0),
    "ended without a row": sent("delays", 1, 1.0),
    "settled twice": [row(1, "ack", 10.0, "move_a"), row(1, "ack", 10.0, "move_b")],
    "did not end in time": [noted("late", 10.0, program="pool")],
    "miscounted": [noted("counters", 99.0, queue="q", counters=dict.fromkeys(COUNTED.values(), 1))],
}
"""Rules for all jobs that no plant in a running soak is for, and a story that is wrong."""


@pytest.mark.parametrize("rule", OF_ALL)
def test_what_is_planted_is_found_by_a_rule_for_all_jobs(rule: str) -> None:
    counters = dict.fromkeys(("acked", "cancelled", "expired", "displaced"), 0)
    its = [
        {**record, "counters": {**counters, **record.get("counters", {})}}
        for record in OF_ALL[rule]
    ]
    evidence = gather(records(sent("move", 1, 0.5), its))
    assert list(RULES[rule](evidence, Causes(evidence, 3.0)))


def test_the_page_names_every_scenario() -> None:
    page = (ROOT / "docs/guarantees.md").read_text()
    assert [name for name in SCENARIOS if f"`{name}`" not in page] == []


def test_a_scenario_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="no scenario 'nonsense'; there are: alternate"):
        choose(["nonsense"])


def test_queues_are_of_one_scenario_each() -> None:
    counted = count()
    names = {name: next(counted) for its in SCENARIOS.values() for name in its.queues}
    assert len(names) == next(counted)
