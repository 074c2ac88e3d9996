"""Every row of the benchmarks runs, with tiny numbers, and says something that makes sense."""

import json
import math
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.__main__ import ORDER, SPARK, measure
from benchmarks.apps.board import Board
from benchmarks.lab.bench import Bench
from benchmarks.lab.rounds import interleave, percentile, ratios, spread
from benchmarks.peers.catalogue import PEERS
from benchmarks.peers.compare import row_of
from benchmarks.profiles import redis_side, worker
from benchmarks.profiles.steps import Steps
from benchmarks.profiles.worker_program import ORDER as STEPS
from benchmarks.report import results, table
from benchmarks.rows import ROWS
from benchmarks.rows.row import Figure, Outcome, Row, Target, Unmeasured
from tests.benchmarks.measured_rows import check


def test_all_rows_are_in_the_table() -> None:
    assert sorted([*ORDER, *SPARK]) == sorted(ROWS)


def test_all_rows_are_on_the_page() -> None:
    page = Path("docs/performance.md").read_text(encoding="utf-8")
    assert [name for name in ROWS if f"| `{name}` |" not in page] == []


def test_a_row_of_some_peers_does_not_take_the_place_of_that_of_all() -> None:
    assert row_of("peers-idle", [*PEERS.values()]) == "peers-idle"
    assert row_of("peers-idle", [PEERS["huey"]]) == "peers-idle (huey)"


START = "start"


@pytest.mark.parametrize("name", [name for name in (*ORDER, "history-memory") if name != START])
def test_a_row_runs(bench: Bench, name: str) -> None:
    check(bench, name)


@pytest.mark.usefixtures("programs_begin_with_nothing")
def test_the_row_that_measures_a_start_runs(bench: Bench) -> None:
    check(bench, START)


def test_rows_of_others_need_no_spark() -> None:
    code = "import sys, benchmarks.__main__; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_profile_of_the_worker_accounts_for_its_time(bench: Bench) -> None:
    taken: Counter[str] = Counter()
    for mode in worker.MODES:
        found = worker.profile(bench, mode)
        assert list(found.steps) == list(STEPS)
        taken.update({name: step.low > 0 for name, step in found.steps.items()})
        known = sum(step.middle for step in found.steps.values())
        assert 0.8 * found.timed.middle < known <= 1.01 * found.timed.middle
        console = Console(record=True, width=120)
        worker.show(console, found)
        assert "pack the rows of history" in console.export_text()
        json.dumps(found.to_json())
    # a process that gets all at once, say, may take one of them in no turn of its own
    assert set(taken) == set(+taken), "a step that is not there any more"


@pytest.mark.parametrize("mode", redis_side.MODES)
def test_a_profile_of_redis_accounts_for_its_time(bench: Bench, mode: str) -> None:
    found = redis_side.profile(bench, mode)
    assert {"HMGET", "TIME", redis_side.LUA, redis_side.REST} <= set(found.steps)
    assert math.isclose(sum(step.middle for step in found.steps.values()), found.cpu.middle)
    console = Console(record=True, width=120)
    redis_side.show(console, found)
    assert redis_side.LUA in console.export_text()
    json.dumps(found.to_json())


def test_a_step_is_charged_its_own_time() -> None:
    steps = Steps()
    inner = steps.wrap("inner", lambda: sum(range(100_000)))
    outer = steps.wrap("outer", lambda: inner() + inner())
    assert outer() == 2 * sum(range(100_000))
    (own, once), (called, twice) = steps.taken()["outer"], steps.taken()["inner"]
    assert (once, twice) == (1, 2)
    assert 0 < own < called


def test_what_cannot_be_measured_says_so_loudly(bench: Bench) -> None:
    def refuse(_: Bench) -> list[Figure]:
        raise Unmeasured("no such thing yet")

    outcome = measure(Row("later", "something to come", refuse), bench)
    console = Console(record=True, width=120)
    table.show(console, {}, [outcome])
    assert "NOT MEASURED no such thing yet" in console.export_text()


def test_verdicts() -> None:
    def verdict(value: float, target: Target) -> str:
        return Figure("", spread([value]), target=target).verdict

    more, less = Target(0.5, 0.7), Target(6, 4, more=False)
    assert [verdict(v, more) for v in (0.4, 0.5, 0.7)] == ["missed", "reached", "aim"]
    assert [verdict(v, less) for v in (7, 6, 4)] == ["missed", "reached", "aim"]
    every = Target(15, 25, every=True)
    assert Figure("", spread([16, 14, 30]), target=every).verdict == "missed"
    assert Figure("", spread([16, 15, 30]), target=every).verdict == "reached"


def test_measurements_take_turns_and_are_compared_round_by_round() -> None:
    order: list[str] = []

    def measured(name: str, value: float) -> float:
        order.append(name)
        return value

    found = interleave(2, {"a": lambda: measured("a", 4.0), "b": lambda: measured("b", 2.0)})
    assert order == ["a", "b", "a", "b"]
    assert ratios(found["a"], found["b"]).values == (2.0, 2.0)
    assert percentile(list(range(1, 101)), 99) == 99
    assert percentile([5.0], 99) == 5.0


def test_a_board_counts_for_every_slot(tmp_path: Path) -> None:
    board = Board.create(tmp_path / "board", marks=3)
    first, second = board.claim(), board.claim()
    assert first != second
    board.words[first + 1] += 2
    board.words[second + 1] += 3
    assert board.total() == 5
    assert Board(tmp_path / "board").total() == 5


def test_the_summary_keeps_other_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "SUMMARY", tmp_path / "summary.json")
    outcome = Outcome("r", "a row", [Figure("x", spread([1.0, 2.0]))])
    facts = results.about("a server", "tiny", 1)
    results.summarize({**facts, "at": "then"}, [outcome], "one")
    results.summarize({**facts, "at": "now"}, [outcome], "two")
    results.summarize({**facts, "at": "now"}, [Outcome("s", "another row")], "one")
    kept = json.loads((tmp_path / "summary.json").read_text())
    one, two = kept["one"]["a server"], kept["two"]["a server"]
    assert [one["rows"][row]["at"] for row in "rs"] == ["then", "now"]
    assert two["rows"]["r"]["figures"]["x"] == [1.5, 1.0, 2.0, "×", "info"]


def test_every_peer_has_an_adapter() -> None:
    root = Path(__file__).resolve().parents[2]
    for peer in PEERS.values():
        source = (root / (peer.adapter.replace(".", "/") + ".py")).read_text()
        assert source.startswith('"""'), "it says which configuration, and why"
        assert "adapter.main(" in source
