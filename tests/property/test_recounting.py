"""The bytes that wait in a queue are counted again in many steps, and the queue goes on between any
two of them: at random; and faults of that, planted, are found."""

from functools import cache
from random import Random

import pytest
import redis

from rqueue.protocol import commands, scripts
from rqueue.protocol.policies import Kind
from tests.property.arms import ARMS
from tests.property.combining import Combined
from tests.property.sources import Sources, sound
from tests.support.profiles import examples

NOTE, OVER, RECOUNT = (f"include/size/{name}.lua" for name in ("note", "over", "recount"))
KINDS = [Kind.of(["max_bytes"]), Kind.of(["max_bytes", "ttl", "unique"]), Kind.of(["ring_bytes"])]
SEEDS, STEPS = examples(1, 20), 100
TO_FIND = 40
"""A server shows a hash in an order of its own, another one each time that it is started: whether a
course finds a fault differs with it, so that each is played with jobs of other ids too."""


def _replaced(random: Random, _number: int) -> dict[str, str]:
    return {"unique": random.choice(["", "sr:a", "sr:b", "sr:c"])}


class Recounted(Combined):
    """A queue whose bytes are being counted again most of the time."""

    def __init__(self, client: redis.Redis, name: str, kind: Kind, seed: int, ids: int) -> None:
        super().__init__(client, name, kind, seed)
        # servers show hashes with longer words, and with more of them, in parts
        self.prefix = 70 * "j" + f"{ids}."
        if "unique" in kind.policies:  # jobs get others' envelopes while they wait
            replaced = ARMS["unique"]._replace(terms=_replaced)
            self.arms = [replaced]
        option = "ring_bytes" if "ring_bytes" in kind.policies else "max_bytes"
        self.run(commands.configure(self.keys, {option: 1200}))
        for _ in range(20):
            self.run(commands.enqueue(self.keys, self.puts(3)))
        self.rounds = 0

    def recount(self) -> bool:
        """Whether there is more to do."""
        begun = "recount_at" in self.before.meta
        more: int = self.run(commands.repair_room(self.keys))
        self.rounds += begun and not more
        return more > 0


@cache
def some_at_a_time() -> Sources:
    """A step looks at one or two sizes, in any queue."""
    return sound().changed((RECOUNT, "RECOUNT_SOME = 100000, '500'", "RECOUNT_SOME = 0, '1'"))


def course(client: redis.Redis, name: str, kind: Kind, seed: int, ids: int = 0) -> int:
    """How often all of them were counted in it. ids: with others a server shows what it counts in
    another order."""
    recounted = Recounted(client, name, kind, seed, ids)
    try:
        for _ in range(STEPS):
            recounted.step()
            if recounted.random.random() < 0.8:
                recounted.recount()
        for _ in range(200):
            if not recounted.recount():
                break
        assert not {"recount_at", "recounted"} & recounted.before.meta.keys()
        recounted.empty()
    finally:
        recounted.teardown()
    return recounted.rounds


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_sum_is_right_at_any_time(
    client: redis.Redis,
    queue_name: str,
    kind: Kind,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scripts, "SCRIPTS", some_at_a_time())
    rounds = sum(course(client, queue_name, kind, seed) for seed in range(SEEDS))
    assert rounds > SEEDS, "the search has to meet the end of a count too"


FAULTS = {
    "what comes meanwhile looks as if it had not been counted": (
        NOTE,
        "anew and '0%d' or '%d'",
        "'%d'",
    ),
    "what comes meanwhile is not counted": (NOTE, "if anew and again ~= 0", "if false"),
    "what gets another size counts twice": (
        NOTE,
        "again + size - (size_again(known) and before or 0)",
        "again + size",
    ),
    "what goes meanwhile stays counted": (OVER, "if again > 0 and", "if false and"),
    "what goes before it was counted is taken off": (
        OVER,
        "if size_again(known) then again",
        "if known then again",
    ),
    "what was counted is counted again": (RECOUNT, "size_again(size) ~= counts", "counts"),
    "what was counted is never cleared": (
        RECOUNT,
        "(counts and 'count ' or 'clear ') .. page[1]",
        "'count ' .. page[1]",
    ),
    "it begins anew in each step": (RECOUNT, "cursor or '0'", "'0'"),
}

REPLACED = {"what gets another size counts twice"}
"""Those that need jobs that get others' envelopes: the kind with these is tried first."""


@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_is_found(
    what: str,
    client: redis.Redis,
    queue_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scripts, "SCRIPTS", some_at_a_time().changed(FAULTS[what]))
    replaced_first = sorted(KINDS, key=lambda kind: "unique" not in kind.policies)
    with pytest.raises(AssertionError):
        for kind in replaced_first if what in REPLACED else KINDS:
            for number in range(TO_FIND):
                course(client, queue_name, kind, number % 2, ids=number)
