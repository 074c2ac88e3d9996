"""Every command says the same over a Redis Cluster as over one server: its output, word for word
but for times, and its exit code."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest
from click.testing import Result

from rqueue.cli import cli
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.settings import Settings
from tests.support.command_line import runner
from tests.support.deployments import one_server
from tests.support.redis_cluster import SmallCluster

ELSEWHERE = {
    "worker": "tests/workers",
    "dev": "a server of its own",
    "demo": "a server of its own",
    "bench": "figures, which differ",
    "pipeline archive": "tests/pipeline/test_redis_cluster.py",
    "pipeline report": "tests/pipeline/test_redis_cluster.py",
    "pipeline replay": "tests/pipeline/test_redis_cluster.py",
    "pipeline plan": "tests/pipeline/test_redis_cluster.py",
    "pipeline load": "tests/pipeline/test_redis_cluster.py",
}
"""Commands that are not run here, and where they are, or why not."""

SCENARIO = """
    enqueue app.t 1 -q A --id one
    enqueue app.t 2 -q A --id two --priority 7
    enqueue app.t 3 -q A --id later --in 1h
    enqueue app.u 4 -q B --id four
    enqueue app.u 5 -q C --id five --unique
    queues
    queues A
    queues nowhere
    jobs A
    jobs A --state scheduled
    browse A
    show one
    show four --queue B
    show nobody
    log one
    result one
    watch one --timeout 0.1
    consumers A
    groups A
    alerts A
    unique C
    history A
    stats A --interval 10ms
    stats --interval 10ms
    promote A later
    prioritize A one --front
    jobs A
    move A B one --yes
    copy B C four --yes
    jobs B
    jobs C
    reject B one --reason broken
    dead list B
    dead requeue B --yes
    reject B one --reason again
    dead purge B --yes
    expire C --all --yes
    cancel two --yes
    cancel nobody --yes
    pause A
    resume A
    cron add A nightly app.t --cron 0_3_*_*_*
    cron list A
    cron show A nightly
    cron pause A nightly
    cron resume A nightly
    cron edit A nightly --every 2h
    cron run-now A nightly
    cron reset A nightly
    cron remove A nightly
    limits set B api 3
    limits list B
    limits reset B api
    shares set C acme 3
    shares list C
    shares reset C acme
    shards create D 2
    shards list D
    shards open D
    shards advance D
    shards drain D 0
    shards forget D 1 --yes
    shards list D
    queues D
    configure B --keep 90s
    configure B
    history C
    purge B --yes
    doctor
    doctor B --repair --yes
    delete B --yes
    delete C --yes --jobs
    queues
"""

CHANGES = [
    (r"\bV[0-9A-Za-z]{13}\b", "ID"),
    (r"@\d{13}\b", "@TICK"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+(\+00:00|Z)", "TIME"),
    (r"\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d)?)?", "TIME"),
    (r"\b\d\d:\d\d:\d\d\b", "TIME"),
    (r"\b\d+(\.\d+)?(ms|µs|us|s|m|h|d)\b( \d+(\.\d+)?(ms|s|m|h|d)\b)*", "SPAN"),
    (r"\b\d+(\.\d+)?/s\b", "RATE"),
    (r"\s+", " "),
    (r"[─━]+", "-"),
]


def commands_of(group: click.Command, path: str = "") -> Iterator[str]:
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield from commands_of(command, f"{path} {name}".strip())
    else:
        yield path


def test_every_command_is_run_on_a_cluster() -> None:
    run = {" ".join(line.split()[:2]) for line in SCENARIO.strip().splitlines()}
    run |= {line.split()[0] for line in SCENARIO.strip().splitlines()}
    assert set(commands_of(cli)) - run == set(ELSEWHERE)


def played(url: str, namespace: str, names: dict[str, str]) -> Iterator[tuple[str, Result]]:
    """Run the scenario; what each line said."""
    for line in SCENARIO.strip().splitlines():
        words = [names.get(word, word).replace("_", " ") for word in line.split()]
        if words[0] == "history" and words[1] == names["A"]:
            with Queue(names["A"], settings=Settings(url=url, namespace=namespace)) as queue:
                settle_one(queue)
        result = run(url, namespace, words)
        yield line.strip(), result


def run(url: str, namespace: str, words: list[str]) -> Result:
    args = ["--url", url, "--namespace", namespace, *words]
    result = runner().invoke(cli, args, prog_name="rqueue")
    assert result.exception is None or isinstance(result.exception, SystemExit), words
    return result


def settle_one(queue: Queue) -> None:
    """A job that ends, for the history."""
    queue.send("app.t", [9], None)
    with queue.consumer(jobs=1, renew=False) as consumer:
        (job,) = consumer.pull()
        consumer.settle(ack=[job])


def masked(result: Result, url: str, names: dict[str, str]) -> str:
    said = (result.stdout + "\n" + result.stderr).replace(url, "URL")
    for short, name in names.items():
        said = re.sub(rf"\b{re.escape(name)}\b", short, said)
    for pattern, instead in CHANGES:
        said = re.sub(pattern, instead, said)
    return f"{said.strip()} -> {result.exit_code}"


@one_server
@pytest.mark.timeout(300)
def test_the_same_over_a_cluster_as_over_one_server(
    server: EmbeddedRedis, redis_cluster: SmallCluster, queue_name: str
) -> None:
    namespace = queue_name
    places = redis_cluster.queues_everywhere("orders", namespace=namespace)
    names = dict(zip("ABC", places, strict=True))
    one = played(server.url, namespace, names)
    many = played(redis_cluster.cluster_url, namespace, names)
    different = []
    for (line, alone), (_, whole) in zip(one, many, strict=True):
        said = masked(alone, server.url, names), masked(whole, redis_cluster.cluster_url, names)
        if line.startswith("doctor"):
            assert alone.exit_code == whole.exit_code, line
        elif said[0] != said[1]:
            different.append(f"{line}\n  one server: {said[0]}\n  a cluster:  {said[1]}")
    assert not different, "\n".join(different)
