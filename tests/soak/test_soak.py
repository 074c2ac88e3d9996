"""A soak of some seconds, and the proof that its verdict can fail."""

from __future__ import annotations

import io
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from tests.soak.__main__ import main
from tests.soak.faults.catalogue import CATALOGUE, select
from tests.soak.faults.scene import NoTarget, Scene
from tests.soak.plants import PLANTS
from tests.soak.programs import ROOT
from tests.soak.report import print_report
from tests.soak.scenarios import SCENARIOS
from tests.soak.schedule import plan
from tests.soak.servers import choose
from tests.soak.soak import Soak

SEED = 7
pytestmark = pytest.mark.timeout(300)


def test_what_is_planted_is_found(tmp_path: Path, server_name: str) -> None:
    plants = dict.fromkeys(plant for plant, _ in PLANTS.values())
    soak = Soak(choose(server_name), tmp_path, 3, 1, [], plants=list(plants), patience=4)
    verdict, _ = soak.run()
    found = {rule for rule, lines in verdict.wrong.items() if lines}
    assert {rule for _, rule in PLANTS.values()} <= found


def test_a_seed_makes_the_same_schedule() -> None:
    faults = select([])
    assert plan(7, 600, faults) == plan(7, 600, faults)
    assert plan(7, 600, faults) != plan(8, 600, faults)


def test_ten_minutes_have_a_thousand_faults_of_all_kinds() -> None:
    planned = [one for track in plan(7, 600, select([])).values() for one in track]
    assert len(planned) >= 1200
    assert {one.fault.name for one in planned} == set(CATALOGUE)


def test_faults_are_chosen_by_name_prefix_and_weight() -> None:
    chosen = select(["worker-kill=3", "redis-"])
    assert chosen[0].weight == 3
    assert {fault.name for fault in chosen[1:]} == {n for n in CATALOGUE if n.startswith("redis-")}
    assert "redis-kill" not in {fault.name for fault in select([], ["redis-"])}
    with pytest.raises(ValueError, match="no fault 'nonsense'"):
        select(["nonsense"])
    with pytest.raises(ValueError, match="'x' is no weight"):
        select(["worker-kill=x"])


@pytest.mark.parametrize("seconds", [10, pytest.param(60, marks=pytest.mark.long)])
def test_faults_of_all_kinds(tmp_path: Path, server_name: str, seconds: int) -> None:
    soak = Soak(choose(server_name), tmp_path, seconds, SEED, select([]))
    verdict, evidence = soak.run()
    report = io.StringIO()
    print_report(Console(file=report, width=100), verdict, evidence, {"folder": str(tmp_path)})
    assert verdict.right, report.getvalue()
    assert verdict.counts["faults"] > seconds / 2  # few where other programs have the processors
    assert verdict.counts["accepted"] > 4 * seconds


def test_a_program_that_has_just_ended_is_no_target() -> None:
    field: Any = SimpleNamespace(lease=3.0)
    scene = Scene(field, random.Random(1), threading.Event())
    for act in (
        lambda: scene.kill([0]),
        lambda: scene.tell(0, signal.SIGTERM),
        lambda: scene.freeze([0], 1),
    ):
        with pytest.raises(NoTarget):
            act()


BRIEF = (
    *("worker-kill", "worker-term", "worker-pause", "pool-drain", "pool-roll", "pool-deploy"),
    *("redis-kill", "redis-script", "redis-hangup", "redis-forget", "net-cut", "net-swallow"),
    *("producer-cut-reply", "producer-kill", "relay-kill", "queue-pause", "job-fork-exit"),
)
"""Faults that are over at once: nothing has to wait for the end of a lease."""

PATIENT_LEASE_S = 30.0
"""Longer than any process waits for its turn on a busy machine."""


def test_all_scenarios_and_some_faults(tmp_path: Path, server_name: str) -> None:
    scenarios = list(SCENARIOS.values())
    soak = Soak(
        choose(server_name),
        tmp_path,
        10,
        SEED,
        select(BRIEF),
        scenarios,
        rate=6,
        pressure=0.3,
        lease=PATIENT_LEASE_S,
    )
    verdict, evidence = soak.run()
    report = io.StringIO()
    print_report(Console(file=report, width=100), verdict, evidence, {"folder": str(tmp_path)})
    assert verdict.right, report.getvalue()
    assert set(SCENARIOS) <= {job.scenario for job in evidence.jobs.values()}


def test_wrong_usage_ends_with_2_and_says_what_there_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    wrongs = (["--faults", "x"], ["--scenarios", "y"], ["--server", "z"], ["--minutes", "many"])
    for wrong in wrongs:
        monkeypatch.setattr(sys, "argv", ["soak", *wrong])
        try:
            code: object = main()
        except SystemExit as end:
            code = end.code
        assert code == 2
        assert wrong[1] in capsys.readouterr().err


def test_its_program_ends_with_its_code() -> None:
    command = [sys.executable, "-m", "tests.soak", "--server", "redis1"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 2, ended.stderr
