"""Every command under every fault: one line, the right exit code, nothing lost; and the same
command again, when the fault is over, does the rest.

Here faults are played under the session of the tests; `test_fault_processes` kills real ones.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import redis
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from rqueue import Queue
from rqueue.cli import cli
from rqueue.embedded.server import EmbeddedRedis
from rqueue.model.envelope import pack
from rqueue.pipeline.archive.archiver import archive
from rqueue.pipeline.lake import lake as lakes
from rqueue.pipeline.lake.lake import CHECKPOINT
from tests.pipeline.test_replay import make_dead
from tests.support.history import T0, archived_once, settle
from tests.support.redis_server import Servers, chosen
from tests.support.spark import Sparks

ROWS, DEAD, GOOD = 200, 5, 20

COMMANDS: dict[str, str] = {
    "archive": "archive --once --lake OUT/lake --patience 1s -q q",
    "report": "report --lake LAKE --from 36500d --out OUT/page.html",
    "replay": "replay --where true -q dead --to NAME --name NAME --ledger OUT --yes",
    "plan": "plan -q q --target 2s --repetitions 5 --jobs 1000 --plot OUT/plan.svg",
    "load": "load HERE/rows.csv --format csv --option header=true --task t -q NAME --name NAME"
    " --column level=int(level) --args-columns n --bad-rows OUT/bad --partitions 2",
}
ENDS = dict.fromkeys(COMMANDS, 0) | {"load": 1}
"""The exit code of each when all is well: a row of the load is bad."""

ON_LAKES: dict[str, str] = {
    "archive": "archive --once --lake OUT/lake --patience 1s -q q",
    "report": "report --lake OUT/lake --from 36500d --out OUT/page.html",
    "replay": "replay --where true --from lake --lake OUT/lake --to NAME --name NAME --yes",
    "plan": "plan --lake OUT/lake --target 2s --repetitions 5 --jobs 1000 --plot OUT/plan.svg",
}


@dataclass
class World:
    """A server with history and dead letters, a lake of that history, and rows to load. Each test
    has a name of its own, and a folder `out`, into which its command writes."""

    server: EmbeddedRedis
    here: Path
    lake: Path
    spark: SparkSession
    name: str = ""
    out: Path = field(default_factory=Path)

    def words(self, line: str) -> list[str]:
        places = {"OUT": self.out, "LAKE": self.lake, "NAME": self.name, "HERE": self.here}
        for place, value in places.items():
            line = line.replace(place, str(value))
        return ["--url", self.server.url, "pipeline", *line.split()]

    def run(self, line: str, *more: str) -> Result:
        return CliRunner().invoke(cli, [*self.words(line), *more])

    def check(self, command: str) -> None:
        """Is all there, once?"""
        with redis.Redis.from_url(self.server.url) as client:
            if command == "archive":
                found = lakes.read(self.spark, str(self.out / "lake"))
                assert archived_once(client, ["q"], found) == ROWS
            elif command in ("replay", "load"):
                with Queue(self.name, self.server.url) as queue:
                    there = queue.counts().ready
                assert there == (DEAD if command == "replay" else GOOD)
        if command == "report":
            assert (self.out / "page.html").read_text().rstrip().endswith("</html>")
        if command == "plan":
            assert (self.out / "plan.svg").read_text().rstrip().endswith("</svg>")


@pytest.fixture(scope="module")
def shared(
    sparks: Sparks, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    here = tmp_path_factory.mktemp("faults")
    server = servers.make(chosen() or "newest", config={"appendfsync": "always"}).start()
    with Queue("q", server.url) as queue, Queue("dead", server.url) as dead:
        at = [T0 + 500 * number for number in range(ROWS)]
        ran = [ms + 5 for ms in at]
        settle(queue, ROWS, enqueued=at, started=ran, finished=[ms + 400 for ms in ran])
        make_dead(dead, {f"d{n}": (pack("t", [n]), "ValueError") for n in range(DEAD)})
    levels = ["4"] * GOOD + ["high"]
    rows = "".join(f"{number},{level}\n" for number, level in enumerate(levels))
    (here / "rows.csv").write_text(f"n,level\n{rows}")
    archive(sparks.get(), str(here / "lake"), {"url": server.url, "queues": "q"}, once=True)
    yield World(server, here, here / "lake", sparks.get())
    server.stop()


@pytest.fixture
def world(
    shared: World, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> World:
    monkeypatch.chdir(shared.here)
    monkeypatch.delenv("RQUEUE_URL", raising=False)
    out = tmp_path / "out"
    out.mkdir()
    return World(shared.server, shared.here, shared.lake, spark, f"n{os.urandom(4).hex()}", out)


# -- faults ----------------------------------------------------------------------------------------


@contextmanager
def redis_dies(world: World, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Redis is killed when the command has looked at it, and has its session."""
    patch.setattr("rqueue.cli.pipeline.history_options.PATIENCE", "200ms")
    patch.setattr("rqueue.spark.quiet_java.end_quietly", lambda _: world.server.kill())
    yield
    patch.undo()
    world.server.start()


@contextmanager
def mounted(world: World, *options: str) -> Iterator[None]:
    """Another file system at `out`."""
    subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", str(world.out)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(world.out)], check=True)


@contextmanager
def disk_is_full(world: World, patch: pytest.MonkeyPatch) -> Iterator[None]:
    with mounted(world, "-o", "size=4k"):
        (world.out / "large").write_bytes(b"x" * 4096)
        yield


@contextmanager
def not_allowed(world: World, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """A file system that nobody may write to, root neither."""
    with mounted(world, "-o", "ro"):
        yield


needs_mount = pytest.mark.skipif(os.geteuid() != 0, reason="another file system takes root")

Fault = Callable[[World, pytest.MonkeyPatch], AbstractContextManager[None]]
FAULTS: dict[str, Fault] = {"redis": redis_dies, "full": disk_is_full, "read-only": not_allowed}
SAID = {"redis": "cannot reach Redis", "full": "No space left", "read-only": "ead-only"}
CODES = {
    "redis": dict.fromkeys(COMMANDS, 4),
    "full": {"archive": 1, "report": 2, "replay": 1, "plan": 2, "load": 2},
}
CODES["read-only"] = CODES["full"]

PROGRESS = re.compile(r"(jobs|rows|parameter sets): \d.*|rqueue: not all of it is done; .*")
"""What may be said beside the fault: how far it came, and how to go on."""


def one_line(result: Result, as_json: bool) -> str:
    """What it said of the fault; nothing else, and no traceback."""
    assert isinstance(result.exception, SystemExit), result.exception
    said = [line for line in re.split(r"[\r\n]+", result.stderr) if line.strip()]
    said = [line for line in said if not PROGRESS.fullmatch(line.strip())]
    assert len(said) == 1, result.stderr
    assert said[0].startswith("rqueue: ") and "rqueue.errors" not in said[0]
    if as_json:
        for line in result.stdout.splitlines():
            json.loads(line)
    return said[0]


TRIED = [
    pytest.param(
        command, fault, as_json,
        marks=[
            *([needs_mount] if fault != "redis" else []),
            *([] if (row + column) % 2 == as_json else [pytest.mark.long]),
            *([pytest.mark.long] if (command, fault) == ("report", "full") else []),
        ],
        id=f"{command}-{fault}-{'json' if as_json else 'text'}",
    )
    for row, command in enumerate(COMMANDS)
    for column, fault in enumerate(FAULTS)
    for as_json in (False, True)
]  # fmt: skip


@pytest.mark.parametrize(("command", "fault", "as_json"), TRIED)
def test_a_command_and_a_fault(
    world: World, monkeypatch: pytest.MonkeyPatch, command: str, fault: str, as_json: bool
) -> None:
    more = ["--json"] if as_json else []
    with monkeypatch.context() as patch, FAULTS[fault](world, patch):
        result = world.run(COMMANDS[command], *more)
    assert SAID[fault] in one_line(result, as_json)
    assert result.exit_code == CODES[fault][command]
    again = world.run(COMMANDS[command], *more)
    assert again.exit_code == ENDS[command], again.output
    world.check(command)


@needs_mount
@pytest.mark.parametrize("kilobytes", [16, 32, 64, 96])
def test_a_disk_that_becomes_full_under_the_archiver(world: World, kilobytes: int) -> None:
    """Its list, its files or Spark's checkpoint have no room: with room it goes on."""
    with mounted(world, "-o", f"size={kilobytes}k"):
        result = world.run(COMMANDS["archive"])
        if result.exit_code:
            said = [line for line in result.stderr.splitlines() if "trying again" not in line]
            assert result.exit_code == 1
            assert said[-1].startswith("rqueue: ") and "Traceback" not in result.output
        subprocess.run(["mount", "-o", "remount,size=8m", str(world.out)], check=True)
        again = world.run(COMMANDS["archive"])
        assert again.exit_code == 0, again.output
        world.check("archive")


# -- lakes -----------------------------------------------------------------------------------------


def a_file(lake: Path) -> None:
    shutil.rmtree(lake)
    lake.write_text("no lake")


def empty(lake: Path) -> None:
    shutil.rmtree(lake)
    lake.mkdir()


def cut_list(lake: Path) -> None:
    for file in (lake / "_spark_metadata").iterdir():
        if not file.name.startswith("."):
            file.write_bytes(file.read_bytes()[:-20])


def later_format(lake: Path) -> None:
    file = lake / "_rqueue/schema.json"
    file.write_text(file.read_text().replace('"format": 1', '"format": 99'))
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def no_data(lake: Path) -> None:
    for file in lake.rglob("*.parquet"):
        file.unlink()


DAMAGES: dict[str, tuple[Callable[[Path], None], dict[str, int]]] = {
    "a file": (a_file, dict.fromkeys(ON_LAKES, 2) | {"archive": 1}),
    "empty": (empty, dict.fromkeys(ON_LAKES, 2) | {"archive": 0}),
    "cut list": (cut_list, dict.fromkeys(ON_LAKES, 1)),
    "later format": (later_format, dict.fromkeys(ON_LAKES, 1)),
    "no data": (no_data, dict.fromkeys(ON_LAKES, 2) | {"archive": 0}),
}


@pytest.mark.parametrize("command", ON_LAKES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_command_and_a_wrong_lake(world: World, command: str, damage: str) -> None:
    """It is said, and what is there stays as it is."""
    do, codes = DAMAGES[damage]
    lake = world.out / "lake"
    shutil.copytree(world.lake, lake)
    do(lake)
    before = {path: path.read_bytes() for path in lake.rglob("*.parquet")}
    result = world.run(ON_LAKES[command])
    assert result.exit_code == codes[command], (result.output, result.exception)
    if codes[command]:
        one_line(result, False)
    assert before.items() <= {path: path.read_bytes() for path in lake.rglob("*.parquet")}.items()


@pytest.mark.parametrize("as_json", [False, True])
def test_a_checkpoint_that_is_cut_short(world: World, as_json: bool) -> None:
    """Spark fails twice, it is put aside, and each row is there once."""
    line = COMMANDS["archive"].replace("1s", "1m")
    assert world.run(line).exit_code == 0
    (offsets,) = (world.out / "lake" / CHECKPOINT / "offsets").glob("[0-9]*")
    offsets.write_bytes(offsets.read_bytes()[:5])
    offsets.with_name(f".{offsets.name}.crc").unlink(missing_ok=True)
    result = world.run(line, *(["--json"] if as_json else []))
    assert result.exit_code == 0, result.output
    said = result.stdout if as_json else result.stderr
    assert ("checkpoint.broken" in said) and "Traceback" not in result.output
    world.check("archive")
