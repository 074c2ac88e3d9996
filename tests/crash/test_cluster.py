"""Pools on a Redis Cluster under load: a node that dies, hangs or gives its slots away is the
trouble of its own queues alone.

The others are not held up: the longest time in which no job of one of them ends is no longer, from
the fault on, than it was before on the same machine under the same load, but for chance. Both are
looked at for about as long.

`-m long` does each twenty times, and says in a line what came of it.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest
import redis

from tests.crash.fleet import Fleet
from tests.support.patience import PATIENCE, until
from tests.support.profiles import examples
from tests.support.redis_cluster import ClusterNode, SmallCluster, slot_of
from tests.support.slot_moves import move_slot, move_slot_at_once, moves_at_once

MakeCluster = Callable[..., SmallCluster]

pytestmark = pytest.mark.timeout(300)

BEFORE = examples(120, 400)
"""Jobs of each queue that end before the fault."""

CHANCE, CHANCE_ONCE = 2, 4
"""How many times as long as the longest gap before the fault one may be from there on: in the
middle of many rounds, and in each round."""

CHANCE_S, CHANCE_ONCE_S = 0.1, 1.5
"""Seconds that it may be in any case, likewise. A node is away for longer, and a worker that waited
for one did so for 2 s; on a machine that does other things a single gap may be any chance's."""

RESUMED_S = 1.0
"""Seconds after a promotion by which jobs of the queue that waited for it end again, in the middle
of many rounds."""

rounds = pytest.mark.parametrize(
    "rounds", [1, pytest.param(20, marks=[pytest.mark.long, pytest.mark.timeout(3600)])]
)


class Outcome(NamedTuple):
    """What became of one round. Seconds: of the fault, until jobs of the queue that met it ended
    again, and the longest in which no job of one of the others ended, before the fault and from it
    on. lost, twice: jobs of the queue that met it."""

    fault: float
    resumed: float
    before: float
    others: float
    lost: int
    twice: int
    jobs: int


def said(what: str, outcomes: Sequence[Outcome], capsys: pytest.CaptureFixture[str]) -> None:
    """A line with what came of all rounds."""

    def of(name: str) -> str:
        found = [getattr(outcome, name) for outcome in outcomes]
        return f"{median(found):.2f} s (at most {max(found):.2f})"

    lost, twice, jobs = (sum(getattr(o, name) for o in outcomes) for name in Outcome._fields[4:])
    with capsys.disabled():
        print(
            f"\n{what}, {len(outcomes)} times: took {of('fault')}, work resumed after "
            f"{of('resumed')}; gaps in the other queues {of('others')}, before the fault "
            f"{of('before')}; {lost} lost and {twice} twice of {jobs} jobs"
        )


def held_up_nobody_else(outcomes: Sequence[Outcome]) -> None:
    """The other queues had no gap that they had not before."""
    for outcome in outcomes:
        assert outcome.others <= max(CHANCE_ONCE * outcome.before, CHANCE_ONCE_S), "a stall"
    if len(outcomes) > 1:
        before = median(outcome.before for outcome in outcomes)
        from_there_on = median(outcome.others for outcome in outcomes)
        assert from_there_on <= max(CHANCE * before, CHANCE_S), "stalls of the others"


def went_on_soon(outcomes: Sequence[Outcome]) -> None:
    """The queue that met the fault waited no longer than it had to."""
    if len(outcomes) > 1:
        assert median(outcome.resumed for outcome in outcomes) <= RESUMED_S


def test_queues_of_three_masters_are_served_by_one_pool(
    redis_cluster: SmallCluster, queue_name: str, tmp_path: Path
) -> None:
    queues = redis_cluster.queues_everywhere(queue_name)
    with Fleet(redis_cluster, queues, tmp_path) as fleet:
        fleet.pool()
        with fleet.load():
            fleet.goes_on(100)
        fleet.settled()
        for queue in queues:
            assert not fleet.lost(queue) and not fleet.twice(queue)
        assert "gone" not in fleet.logs()
        fleet.drained()


def under(
    cluster: SmallCluster,
    name: str,
    folder: Path,
    fault: Callable[[Fleet], float],
    *,
    replicas: int = 0,
    after: Callable[[], object] = lambda: None,
) -> Outcome:
    """Three queues on three nodes under load, and a fault that meets the first of them. fault: says
    when (monotonic time) that was over. after: called before everything is counted. replicas: as of
    `Producer`."""
    folder.mkdir()
    queues = cluster.queues_everywhere(name)
    with Fleet(cluster, queues, folder) as fleet:
        fleet.pool()
        with fleet.load(replicas):
            begun = time.monotonic()
            fleet.goes_on(BEFORE)
            at = time.monotonic()
            over = fault(fleet)
            resumed = fleet.first_end(queues[0], over) - over
            fleet.goes_on()
            end = time.monotonic()
        after()
        fleet.settled()
        lost, *others = (len(fleet.lost(queue)) for queue in queues)
        twice, *again = (len(fleet.twice(queue)) for queue in queues)
        assert not any(others) and not any(again)
        fleet.drained()
        return Outcome(
            over - at,
            resumed,
            max(fleet.stall(queue, begun, at) for queue in queues[1:]),
            max(fleet.stall(queue, at, end) for queue in queues[1:]),
            lost,
            twice,
            len(fleet.producers[queues[0]].accepted),
        )


# -- a master is lost ------------------------------------------------------------------------------


def lose_a_master(
    cluster: SmallCluster, name: str, folder: Path, *, replicas: int, hangs: bool = False
) -> Outcome:
    """Kill the master of the first of three queues (or let it hang) and wait for the promotion of
    its replica."""
    victims: list[ClusterNode] = []

    def fault(fleet: Fleet) -> float:
        victims.append(fleet.node(fleet.queues[0]))
        if hangs:
            return _hang(cluster, victims[0])
        return cluster.kill_master(victims[0])[1]

    def after() -> None:
        if hangs:
            os.kill(victims[0].server.pid, signal.SIGCONT)
            cluster.settle()
        else:
            cluster.bring_back(victims[0])

    return under(cluster, name, folder, fault, after=after, replicas=replicas)


def _hang(cluster: SmallCluster, master: ClusterNode) -> float:
    """Let a master answer nothing any more, and keep its connections open; when a replica of it
    said that it serves the slots."""
    slot, heirs = cluster.slots(master)[0], cluster.replicas(master)
    os.kill(master.server.pid, signal.SIGSTOP)
    until(lambda: any(slot in cluster.slots(heir) for heir in heirs), "a promotion", PATIENCE)
    return time.monotonic()


@rounds
@pytest.mark.parametrize("replicas", [1, pytest.param(0, marks=pytest.mark.long)])
def test_a_master_that_is_killed_holds_up_its_own_queues_alone(
    replicated_cluster: SmallCluster,
    queue_name: str,
    tmp_path: Path,
    rounds: int,
    replicas: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcomes = [
        lose_a_master(
            replicated_cluster, f"{queue_name}-{turn}", tmp_path / str(turn), replicas=replicas
        )
        for turn in range(rounds)
    ]
    said(f"a master killed, {replicas} replicas confirm", outcomes, capsys)
    assert not replicas or not any(outcome.lost for outcome in outcomes)
    held_up_nobody_else(outcomes)
    went_on_soon(outcomes)


@rounds
def test_a_master_that_hangs_holds_up_its_own_queues_alone(
    replicated_cluster: SmallCluster,
    queue_name: str,
    tmp_path: Path,
    rounds: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No connection to it breaks, and new ones are accepted: nobody answers. An idle worker does
    not notice; its supervisor does, which renews its lease."""
    outcomes = [
        lose_a_master(
            replicated_cluster,
            f"{queue_name}-{turn}",
            tmp_path / str(turn),
            replicas=1,
            hangs=True,
        )
        for turn in range(rounds)
    ]
    said("a master that hangs", outcomes, capsys)
    assert not any(outcome.lost for outcome in outcomes)
    held_up_nobody_else(outcomes)
    went_on_soon(outcomes)


# -- a slot moves ----------------------------------------------------------------------------------


def move_a_slot(
    cluster: SmallCluster, name: str, folder: Path, seed: int, *, at_once: bool
) -> Outcome:
    """Move the slot of the first of three queues: key by key, while in the others jobs go on
    between two keys, or as the server does it."""

    def fault(fleet: Fleet) -> float:
        slot = slot_of(fleet.queues[0])
        if at_once:
            move_slot_at_once(cluster, slot)
        else:
            between = partial(fleet.goes_on, 5, fleet.queues[1:])
            move_slot(cluster, slot, seed=seed, between=between)
        return time.monotonic()

    outcome = under(cluster, name, folder, fault)
    assert outcome.lost == outcome.twice == 0
    return outcome


@rounds
def test_a_slot_moves_key_by_key_under_load(
    make_cluster: MakeCluster,
    queue_name: str,
    tmp_path: Path,
    rounds: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = make_cluster()
    outcomes = [
        move_a_slot(cluster, f"{queue_name}-{seed}", tmp_path / str(seed), seed, at_once=False)
        for seed in range(rounds)
    ]
    said("a slot moved key by key", outcomes, capsys)
    held_up_nobody_else(outcomes)


@rounds
def test_a_slot_moves_at_once_under_load(
    make_cluster: MakeCluster,
    queue_name: str,
    tmp_path: Path,
    rounds: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = make_cluster()
    if not moves_at_once(cluster.members[0]):
        with pytest.raises(redis.ResponseError):
            move_slot_at_once(cluster, 0)
        return
    outcomes = [
        move_a_slot(cluster, f"{queue_name}-{seed}", tmp_path / str(seed), seed, at_once=True)
        for seed in range(rounds)
    ]
    said("a slot moved at once", outcomes, capsys)
    held_up_nobody_else(outcomes)
