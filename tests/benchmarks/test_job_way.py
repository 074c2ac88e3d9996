"""The profile of a job's way follows a real job, and counts what it says it counts."""

import json
import socket

import pytest
from rich.console import Console

from benchmarks.__main__ import main
from benchmarks.lab.bench import Bench
from benchmarks.profiles import job_way
from benchmarks.profiles.tracer import Event, Tracer, between
from rqueue.model import names
from rqueue_workers.worker.subscription import Subscription
from tests.support.command_line import runner


@pytest.fixture(scope="module")
def found() -> job_way.Profile:
    with Bench("tiny", 1) as bench:
        return job_way.profile(bench)


def test_each_part_begins_and_ends_where_a_job_does(found: job_way.Profile) -> None:
    enqueue, worker, result = (found.parts[part].functions for part in job_way.PARTS)
    assert enqueue[0][0] == "rqueue.tasks.bound_task"
    assert worker[0][0].startswith("rqueue.transport."), "it hears its wake-up"
    assert worker[-1][0].startswith("rqueue.transport."), "it waits again"
    assert any(name.startswith("rqueue_workers.worker.executors.") for name, _ in worker)
    assert result[0][1].endswith(".result")
    assert not any(name.startswith("rqueue_workers") for name, _ in (*enqueue, *result))


def test_one_round_trip_each_and_the_wait_of_the_worker(found: job_way.Profile) -> None:
    assert [found.parts[part].trips for part in job_way.PARTS] == [1, 2, 1]


def test_totals_are_those_of_the_parts(found: job_way.Profile) -> None:
    totals = found.totals
    parts = found.to_json()["parts"].values()
    assert totals["functions"] == sum(len(part["functions"]) for part in parts)
    assert totals["moves"] == sum(part["moves"] for part in parts)
    assert totals["modules"] == len({name for part in parts for name in part["modules"]})
    assert totals["modules"] <= totals["moves"] < totals["functions"] < totals["lines"]


def test_it_is_as_short_as_it_is_meant_to_be(found: job_way.Profile) -> None:
    assert all(found.totals[name] <= most for name, most in job_way.TARGETS.items()), found.totals


def test_it_is_shown(found: job_way.Profile) -> None:
    console = Console(record=True, width=120)
    job_way.show(console, found)
    job_way.show(console, found, functions=True)
    text = console.export_text()
    assert "tasks.bound_task ▸" in text and "BoundTask.enqueue" in text and "round trips" in text


def test_the_command_answers_in_json() -> None:
    done = runner().invoke(main, ["profile", "job-way", "--size", "tiny", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["totals"]["round_trips"] == 4


def test_moves_are_changes_of_the_module() -> None:
    way = job_way.Way((("a", "f"), ("a", "g"), ("b", "h"), ("a", "f")), 0)
    assert (way.modules, way.moves) == (["a", "b"], 2)


def test_a_tracer_notes_functions_of_rqueue_and_what_is_sent() -> None:
    left, right = socket.socketpair()
    tracer = Tracer()
    with left, right, tracer.running():
        names.tag("a queue")
        left.sendall(b"x")
    kinds = [(event.kind, event.module) for event in tracer.events]
    assert kinds[0] == ("call", "rqueue.model.names")
    assert kinds[-1] == ("send", "")
    names.tag("another")
    assert len(tracer.events) == len(kinds), "it was stopped"


def test_a_part_lies_between_two_waits() -> None:
    def wait(begin: int, end: int) -> Event:
        return Event("wait", "", "", begin, end)

    call = Event("call", "rqueue.x", "f", 25, 25)
    events = [wait(0, 20), call, wait(26, 27), wait(30, 60)]
    assert between(events, 10, 40) == [call, wait(26, 27)]
    assert between(events, 22, 40) is None
    assert between(events, 10, 70) is None


def test_a_subscription_keeps_no_dict() -> None:
    """It has more attributes than CPython looks up quickly in one, and all of a job's way reads
    them."""
    classes = Subscription.__mro__[:-1]
    assert [one.__name__ for one in classes if "__slots__" not in vars(one)] == []
