"""Workflows of two queues do what the model of one says, however words of ends travel between them;
faults that are planted in them are found."""

from functools import partial

import pytest
import redis

from rqueue.protocol.scripts import SCRIPTS, Scripts
from tests.property.flows_apart import Apart, play
from tests.property.planted import Fault, each
from tests.property.sources import sound
from tests.support.profiles import examples

SEEDS = examples(2, 40)
STEPS = 60


def live(client: redis.Redis, queue_name: str, lua: Scripts, seed: int) -> None:
    """One search, in queues of its own."""
    player = Apart(client, queue_name, lua)
    try:
        play(player, seed, STEPS)
    finally:
        player.teardown()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_they_do_what_the_model_says(client: redis.Redis, queue_name: str, seed: int) -> None:
    live(client, queue_name, SCRIPTS, seed)


ENDS = "include/flow/ends.lua"
HEARD, DEFERS = (f"policies/flows/{hook}.lua" for hook in ("heard", "defers"))

FAULTS = [
    Fault("nobody elsewhere hears of it", ENDS, "if #away > 0 then", "if false then"),
    Fault(
        "who waits for a dead letter elsewhere waits for none",
        ENDS,
        "FLOWS.may_return(base, one) and '1' or ''",
        "''",
    ),
    Fault("results stay where they are", ENDS, "string.byte(each.where) == 114", "false"),
    Fault(
        "a word goes to a queue of another name",
        ENDS,
        "FLOWS.name(string.match(each",
        "(string.match(each",
    ),
    Fault(
        "a word of one end is that of all",
        ENDS,
        "entry.ends = entry.ends + 1",
        "entry.ends, entry.said = 1, {}",
    ),
    Fault(
        "who is not done is done", HEARD, "one.state == 'done', said[at + 4]", "true, said[at + 4]"
    ),
    Fault(
        "nobody is woken by what is heard",
        HEARD,
        "FLOWS.tell(base, queue, FLOWS.hear(base, queue, order, joins, FLOWS.STOPS))",
        "FLOWS.hear(base, queue, order, joins, FLOWS.STOPS)",
    ),
    Fault(
        "who waits elsewhere is not noted",
        DEFERS,
        "for _, to in ipairs(one.dependants) do",
        "for _, to in ipairs({}) do",
    ),
    Fault(
        "only the first one that waits hears of it",
        DEFERS,
        "(edges[one.id] or '') .. place",
        "'' .. place",
    ),
]


FIRST = {"a word of one end is that of all": 8}
"""Seeds that find what others do not."""


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis, queue_name: str) -> None:
    lua = sound().changed(fault.piece)
    first = FIRST.get(fault.name, 0)
    searches = [partial(live, client, queue_name, lua, seed) for seed in (first, *range(40))]
    with pytest.raises((AssertionError, redis.ResponseError)) as found:
        for search in searches:
            search()
    assert "compiling script" not in str(found.value), "what is planted is no fault but a slip"
