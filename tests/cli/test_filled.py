"""An option that is empty, as `--task "$TASK"` is where the variable is, never stands for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import pytest
from click.testing import Result

from rqueue.cli.filled import filled
from rqueue.client._sync.queue import Queue
from rqueue.tasks.options import Options
from tests.cli.test_shape import LEAVES, find

Run = Callable[..., Result]

CHOOSING = {"--task", "--error", "--text", "--label", "--since", "--until", "--from", "--to"}
CHOOSING |= {"--queue", "--job", "--jobs-to", "--place"}
READ_OTHERWISE = {
    ("enqueue", "--queue"),  # as a name, which is refused
    ("enqueue", "--label"),  # as NAME=VALUE
    ("configure", "--label"),
    ("pipeline", "--task"),  # of jobs that are made: as a name
    ("pipeline", "--queue"),
}


def _options() -> list[Any]:
    found = []
    for path in LEAVES:
        for one in find(path).params:
            names = CHOOSING & set(one.opts)
            flag = isinstance(one, click.Option) and one.is_flag
            if isinstance(one, click.Option) and names and not flag:
                name = names.pop()
                found.append(pytest.param(path, name, one, id=f"{' '.join(path)} {name}"))
    return found


@pytest.mark.parametrize(("path", "name", "option"), _options())
def test_an_option_that_chooses_is_not_empty(
    path: tuple[str, ...], name: str, option: click.Option
) -> None:
    if (path[0], name) in READ_OTHERWISE and path != ("pipeline", "report"):
        return
    if isinstance(option.type, click.Choice):
        return
    assert getattr(option.type, "func", None) is filled


@pytest.mark.parametrize(
    "line",
    [
        "reject QUEUE --limit 5 --task",
        "expire QUEUE --limit 5 --task",
        "move QUEUE other --limit 5 --task",
        "copy QUEUE other --limit 5 --task",
        "promote QUEUE --all --task",
        "promote QUEUE --all --label",
        "dead purge QUEUE --yes --task",
        "dead purge QUEUE --yes --error",
        "dead purge QUEUE --yes --text",
        "dead purge QUEUE --yes --since",
        "dead requeue QUEUE --yes --until",
        "delete QUEUE --yes --jobs-to",
        "limits set QUEUE crm 3 --key",
        "history QUEUE --task",
        "show nobody -q",
    ],
)
@pytest.mark.parametrize("empty", ["", " "])
def test_nothing_is_done_with_an_empty_one(run: Run, queue: Queue, line: str, empty: str) -> None:
    dead, ready = queue.send("t", [1]), queue.send("t", [2])
    with queue.consumer(jobs=1, renew=False) as consumer:
        (job,) = consumer.pull()
        consumer.settle(reject=[(job, {"type": "ValueError", "message": "x"})])
    later = queue.send("t", [3], options=Options(delay_ms=3_600_000))
    said = run(*line.replace("QUEUE", queue.name).split(), empty, code=2).stderr
    assert "it is empty; leave the option out where nothing is to be said" in said
    assert [str(job.state()) for job in (dead, ready, later)] == ["dead", "ready", "scheduled"]
    assert queue.at("other").job(ready.id).state() == "unknown"


def test_an_empty_name_is_no_queue(run: Run, queue: Queue) -> None:
    queue.send("t", [1])
    for command in (["queues"], ["stats"], ["doctor"], ["jobs"], ["purge", "--yes"], ["pause"]):
        assert "queue name '' is empty" in run(*command, "", code=2).stderr
    assert "queue name '' is empty" in run("queues", "", "--json", code=2).stderr


def test_a_number_of_rows_is_none_below_zero(run: Run, queue: Queue) -> None:
    queue.send("t", [1])
    for command in (["dead", "list"], ["history"]):
        assert "-1 is not in the range" in run(*command, queue.name, "--limit=-1", code=2).stderr


@pytest.mark.parametrize(
    "words",
    [
        ["show", "\udcff"],
        ["cancel", "\udcff"],
        ["watch", "\udcff"],
        ["result", "\udcff"],
        ["log", "\udcff"],
        ["promote", "QUEUE", "\udcff"],
        ["dead", "requeue", "QUEUE", "\udcff", "--yes"],
        ["groups", "QUEUE", "\udcff"],
        ["unique", "QUEUE", "\udcff"],
        ["cron", "show", "QUEUE", "\udcff"],
        ["limits", "reset", "QUEUE", "\udcff"],
    ],
    ids=" ".join,
)
def test_what_is_no_utf_8_is_one_line(run: Run, queue: Queue, words: list[str]) -> None:
    waits = queue.send("t", [1])
    said = run(*(queue.name if word == "QUEUE" else word for word in words), code=2).stderr
    assert said.count("\n") == 1 and "udcff" in said
    assert waits.state() == "ready"
