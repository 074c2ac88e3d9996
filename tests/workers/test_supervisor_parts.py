"""The supervisor's smaller parts, without processes."""

import _signal
import os
import signal
import sys
from pathlib import Path
from types import FrameType

import orjson
import pytest

from rqueue_workers.pool.exit_cause import ExitCause, OomKills, crash_cause, limit_cause
from rqueue_workers.pool.restart_policy import STEADY, RestartPolicy
from rqueue_workers.pool.signals import Inbox


def test_a_death_says_what_it_was() -> None:
    assert ExitCause.of(signal.SIGSEGV) == ExitCause(None, "SIGSEGV")
    assert str(ExitCause.of(signal.SIGSEGV)) == "was killed by SIGSEGV"
    assert ExitCause.of(3 << 8) == ExitCause(3)
    assert (ExitCause(3).type, str(ExitCause(3))) == ("exit code 3", "ended with exit code 3")
    assert ExitCause.of(signal.SIGRTMIN + 5).type == f"signal {signal.SIGRTMIN + 5}"


def test_causes() -> None:
    crash = orjson.loads(crash_cause(ExitCause(None, "SIGKILL"), "w", 7, out_of_memory=False))
    assert (crash["kind"], crash["type"], crash["at"], crash["worker"]) == (
        "crash",
        "SIGKILL",
        7,
        "w",
    )
    memory = orjson.loads(crash_cause(ExitCause(None, "SIGKILL"), "w", 7, out_of_memory=True))
    assert (memory["kind"], memory["type"]) == ("crash", "MemoryLimit")
    other = orjson.loads(crash_cause(ExitCause(None, "SIGSEGV"), "w", 7, out_of_memory=True))
    assert other["type"] == "SIGSEGV"
    limit = orjson.loads(limit_cause(1.5, "w", 7))
    assert (limit["kind"], limit["type"]) == ("time_limit", "HardTimeLimit")
    assert limit["limit"] == 1.5
    assert "1.5 s" in limit["message"]


def test_kills_for_want_of_memory_are_seen_in_the_control_group(tmp_path: Path) -> None:
    (tmp_path / "me").write_text("0::/pool.service\n")
    group = tmp_path / "pool.service"
    group.mkdir()
    events = group / "memory.events"
    events.write_text("low 0\noom_kill 2\n")
    kills = OomKills(tmp_path, tmp_path / "me")
    assert not kills.happened()
    events.write_text("low 0\noom_kill 3\n")
    assert kills.happened()
    assert not kills.happened()


def test_where_nobody_counts_them_there_are_none(tmp_path: Path) -> None:
    assert not OomKills(tmp_path, tmp_path / "none").happened()
    (tmp_path / "me").write_text("0::/nowhere\n")
    assert not OomKills(tmp_path, tmp_path / "me").happened()


def test_a_slot_is_filled_later_the_more_often_its_worker_died_soon() -> None:
    respawn = RestartPolicy((0.0, 0.1, 0.5))
    assert respawn.at(0) == 0
    assert [respawn.died(0, 100, at_work=0.5) for _ in range(4)] == [0.0, 0.1, 0.5, 0.5]
    assert respawn.at(0) == 100.5
    assert respawn.at(1) == 0
    assert respawn.died(0, 200, at_work=STEADY) == 0.0
    assert respawn.died(0, 200, at_work=0.5) == 0.1
    respawn.left(0)
    assert respawn.at(0) == 0


def test_faults_of_rqueue_itself_are_counted_by_slot_until_a_job_explains_them() -> None:
    respawn = RestartPolicy((0.0,))
    assert [respawn.failed(0, at_work=0.5) for _ in range(3)] == [1, 2, 3]
    assert respawn.failed(1, at_work=0.5) == 1
    assert respawn.failed(0, at_work=STEADY) == 0
    assert [respawn.failed(slot, at_work=0.5) for slot in (0, 1)] == [1, 2]
    respawn.explained()
    assert [respawn.failed(slot, at_work=0.5) for slot in (0, 1)] == [1, 1]


@pytest.mark.parametrize("moment", [signal.set_wakeup_fd, _signal.signal])
def test_a_signal_is_heard_that_comes_while_the_pool_takes_the_signals_over(moment: object) -> None:
    def send(_frame: FrameType, event: str, called: object) -> None:
        if event == "c_call" and called is moment:
            os.kill(os.getpid(), signal.SIGTERM)

    earlier: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: earlier.append(number))
    inbox = Inbox()
    sys.setprofile(send)
    try:
        inbox.open()
    finally:
        sys.setprofile(None)
    try:
        # another thread may get it before it is held back: then it is the handler's of before
        assert signal.SIGTERM in [*inbox.take(), *earlier]
    finally:
        inbox.close()
        signal.signal(signal.SIGTERM, before)
