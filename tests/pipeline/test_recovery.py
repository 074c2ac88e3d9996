"""What fails is tried again inside, and what nobody can mend by waiting is not."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from rqueue import errors
from rqueue.cli.failures import exit_code
from rqueue.cli.pipeline.archive import notice_line, notice_text
from rqueue.cli.pipeline.history_options import spark_session
from rqueue.embedded.server import EmbeddedRedis
from rqueue.pipeline.archive import recovery
from rqueue.pipeline.archive.archiver import Archived, Batch, Idle, Notice, archive
from rqueue.pipeline.archive.batches import BatchWriter
from rqueue.pipeline.archive.recovery import Patience, may_go_better
from rqueue.pipeline.errors import LakeBusy, LakeError
from rqueue.pipeline.lake import lake as lakes
from rqueue.pipeline.lake.lake import CHECKPOINT
from rqueue.protocol.keys import QueueKeys
from rqueue.spark.errors import HistoryLost, SparkGone, spark_is_gone
from tests.support.history import archived_once, write
from tests.support.profiles import examples
from tests.support.redis_server import Servers, chosen
from tests.support.spark import Sparks

QUEUE = "q"
KEYS = QueueKeys(QUEUE)


@pytest.fixture
def spark_alone(sparks: Sparks) -> Iterator[SparkSession]:
    """The session, which nobody uses afterwards: of Pythons that were killed it may ask more."""
    yield sparks.get()
    sparks.end_session()


@pytest.fixture
def lone(make_server: Callable[..., EmbeddedRedis]) -> EmbeddedRedis:
    """A server of this test alone, which loses nothing when it is killed."""
    return make_server(config={"appendfsync": "always"})


class Running:
    """An archiver in a thread of its own, with what it says."""

    def __init__(self, spark: SparkSession, url: str, lake: Path, **more: Any) -> None:
        self.stop = threading.Event()
        self.said: list[Batch | Notice | Idle] = []
        self.result: Archived | BaseException | None = None
        self._changed = threading.Condition()
        given = {"interval_s": 0.1, "patience_s": 60.0, **more}

        def tell(what: Any) -> None:
            with self._changed:
                self.said.append(what)
                self._changed.notify_all()

        def run() -> None:
            try:
                found: Archived | BaseException = archive(
                    spark, str(lake), {"url": url}, stop=self.stop, on_batch=tell,
                    on_notice=tell, on_idle=tell, **given,
                )  # fmt: skip
            except BaseException as error:
                found = error
            with self._changed:
                self.result = found
                self._changed.notify_all()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def wait_for(self, wanted: Callable[[], object], timeout: float = 150) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: wanted() or self.result, timeout), self.said
        assert wanted(), self.result

    def rows(self) -> int:
        return sum(one.rows for one in self.said if isinstance(one, Batch))

    def kinds(self) -> list[str]:
        return [one.kind for one in self.said if isinstance(one, Notice)]

    def end(self) -> Archived | BaseException | None:
        self.stop.set()
        self._thread.join(60)
        return self.result


def test_a_server_that_goes_away_is_waited_for(
    spark: SparkSession, lone: EmbeddedRedis, tmp_path: Path
) -> None:
    """Also while nothing comes it says that it is there, with how far it is behind."""
    with redis.Redis.from_url(lone.url) as client:
        write(client, KEYS, entries=1, rows=10)
        it = Running(spark, lone.url, tmp_path / "lake", heartbeat_s=0.5)
        it.wait_for(lambda: it.rows() == 10)
        it.wait_for(lambda: [one for one in it.said if isinstance(one, Idle)])
        assert [one for one in it.said if isinstance(one, Idle)][-1].lag.rows == 0
        rounds = (30, 60)[: examples(1, 2)]
        for rows in rounds:
            known = len(it.kinds())
            lone.kill()
            it.wait_for(lambda known=known: "waiting" in it.kinds()[known:])
            lone.start()
            write(client, KEYS, entries=1, rows=rows - it.rows(), first=it.rows())
            it.wait_for(lambda rows=rows: it.rows() == rows)
        assert it.end() == Archived(rounds[-1], 1 + len(rounds), 0)
        assert it.kinds()[-1] == "again"
        lake = lakes.read(spark, str(tmp_path / "lake"))
        assert archived_once(client, [QUEUE], lake) == rounds[-1]


def test_patience_ends(spark: SparkSession, lone: EmbeddedRedis, tmp_path: Path) -> None:
    it = Running(spark, lone.url, tmp_path / "lake", patience_s=0.1)
    with redis.Redis.from_url(lone.url) as client:
        write(client, KEYS, entries=1, rows=10)
        it.wait_for(lambda: it.rows() == 10)
        lone.kill()
        it.wait_for(lambda: it.result)
    assert it.kinds() == ["waiting"]
    assert isinstance(it.result, Exception) and "ConnectionLost" in f"{type(it.result)}{it.result}"


def test_what_spark_fails_with_is_tried_again(
    spark_alone: SparkSession,
    lone: EmbeddedRedis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The Python that reads for it is killed, also where it plans: each one fails it once more."""
    monkeypatch.setattr(recovery, "FIRST_S", 0.1)
    rounds = examples(1, 3)
    with redis.Redis.from_url(lone.url) as client:
        it = Running(spark_alone, lone.url, tmp_path / "lake")
        for number in range(rounds):
            write(client, KEYS, entries=1, rows=10, first=10 * number)
            it.wait_for(lambda number=number: it.rows() == 10 * number + 10)
            for child in psutil.Process().children(recursive=True):
                # also the one that begins Spark's Python for tests: the next session makes another
                with suppress(psutil.NoSuchProcess):  # some end with the one that began them
                    if "python" in child.name():
                        child.kill()
        write(client, KEYS, entries=1, rows=10, first=10 * rounds)
        it.wait_for(lambda: it.rows() == 10 * rounds + 10)
        assert isinstance(it.end(), Archived)
        assert "again" in it.kinds()
        lake = lakes.read(spark_alone, str(tmp_path / "lake"))
        assert archived_once(client, [QUEUE], lake) == 10 * rounds + 10


@pytest.fixture(scope="module")
def archived(
    sparks: Sparks, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[EmbeddedRedis, Path]]:
    """A server and a lake of two batches of its history; the server has rows for one more."""
    lake = tmp_path_factory.mktemp("archived") / "lake"
    server = servers.make(chosen() or "newest").start()
    with redis.Redis.from_url(server.url) as client:
        for number in range(2):
            write(client, KEYS, entries=1, rows=10, first=10 * number)
            archive(sparks.get(), str(lake), {"url": server.url}, once=True)
        write(client, KEYS, entries=1, rows=10, first=20)
    yield server, lake
    server.stop()


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("offsets", b""),
        ("offsets", b"v1\n{"),
        ("commits", b"v1\nrubbish"),
        ("metadata", b'{"i'),
        ("all offsets", b"v999\n{}\n{}\n"),
    ],
)
def test_a_broken_checkpoint_is_put_aside(
    spark: SparkSession,
    archived: tuple[EmbeddedRedis, Path],
    tmp_path: Path,
    name: str,
    damage: bytes,
) -> None:
    server, kept = archived
    lake = shutil.copytree(kept, tmp_path / "lake")
    said: list[Notice] = []
    source = {"url": server.url}
    with redis.Redis.from_url(server.url) as client:
        folder = lake / CHECKPOINT
        files = [folder / "metadata"]
        if name != "metadata":
            found = sorted((folder / name.removeprefix("all ")).glob("[0-9]*"))
            files = found if name.startswith("all") else found[-1:]
        for file in files:
            file.write_bytes(damage)
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        done = archive(spark, str(lake), source, once=True, on_notice=said.append)
        assert done.rows == 10
        assert [one.kind for one in said] == ["waiting", "again", "checkpoint"]
        assert Path(said[-1].place.removeprefix("file:")).is_dir()
        assert archived_once(client, [QUEUE], lakes.read(spark, str(lake))) == 30
        assert archive(spark, str(lake), source, once=True, on_notice=said.append).rows == 0
        assert len(said) == 3


def test_two_of_one_process(spark: SparkSession, lone: EmbeddedRedis, tmp_path: Path) -> None:
    """The second one is refused at once, whatever its name for the lake; the first one goes on."""
    with redis.Redis.from_url(lone.url) as client:
        it = Running(spark, lone.url, tmp_path / "lake")
        write(client, KEYS, entries=1, rows=10)
        it.wait_for(lambda: it.rows() == 10)
        other = f"file://{tmp_path}/lake/"
        with pytest.raises(LakeBusy, match="another archiver"):
            archive(spark.newSession(), other, {"url": lone.url}, once=True)
        write(client, KEYS, entries=1, rows=10, first=10)
        it.wait_for(lambda: it.rows() == 20)
        assert it.end() == Archived(20, 2, 0)
    assert archive(spark, other, {"url": lone.url}, once=True).rows == 0


def test_our_own_part_of_a_batch_is_tried_again(
    spark: SparkSession,
    lone: EmbeddedRedis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once before the batch is part of the lake, once behind that: it counts once."""
    left = ["before", "behind"]
    real = BatchWriter._commit

    def commit(run: BatchWriter, *given: Any) -> None:
        if left and left[0] == "before":
            left.pop(0)
            raise errors.ConnectionLost("gone")
        real(run, *given)
        if left:
            left.pop(0)
            raise errors.RedisTimeout("slow")

    monkeypatch.setattr(BatchWriter, "_commit", commit)
    monkeypatch.setattr(recovery, "FIRST_S", 0.01)
    said: list[Notice] = []
    with redis.Redis.from_url(lone.url) as client:
        write(client, KEYS, entries=1, rows=10)
        archive(
            spark, str(tmp_path / "lake"), {"url": lone.url}, once=True,
            on_notice=said.append,
        )  # fmt: skip
        assert [one.kind for one in said] == ["waiting", "again"] * 2
        lake = lakes.read(spark, str(tmp_path / "lake"))
        assert archived_once(client, [QUEUE], lake) == 10


def test_a_server_that_never_answered(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rqueue.pipeline.archive.archiver.START_S", 0.1)
    with pytest.raises(errors.ConnectionLost):
        archive(spark, str(tmp_path / "lake"), {"url": "redis://127.0.0.1:1"}, patience_s=600)


def failed(said: str) -> StreamingQueryException:
    return StreamingQueryException(f"Query [id = 1] terminated with exception: {said}", "1")


@pytest.mark.parametrize(
    ("error", "better"),
    [
        (errors.ConnectionLost("gone"), True),
        (errors.RedisLoading("loads"), True),
        (errors.RedisOutOfMemory("full"), True),
        (errors.AuthenticationFailed("who"), False),
        (errors.ConfigError("queues", "none"), False),
        (HistoryLost("q", "1-0", "2-0", ""), False),
        (LakeBusy("two"), False),
        (LakeError("no space left"), False),
        (SparkGone(), False),
        (ValueError("a bug"), False),
        (failed("Python worker failed to connect back"), True),
        (failed("...\nrqueue.errors.ConnectionLost: gone"), True),
        (failed("...\nrqueue.errors.WrongServer: a replica"), False),
        (failed("...\nrqueue.spark.errors.HistoryLost: history of queue 'q'"), False),
        (failed("...\nrqueue.errors.Undecodable: entry 1-0"), False),
    ],
)
def test_what_may_go_better(error: Exception, better: bool) -> None:
    assert may_go_better(error) is better


def raised() -> Iterator[type[errors.RQueueError]]:
    """All classes of our errors."""
    left: list[type[errors.RQueueError]] = [errors.RQueueError]
    while left:
        kind = left.pop()
        yield kind
        left += kind.__subclasses__()


def test_any_error_of_ours_is_one_line_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Raised in a process of Spark, it comes back as a text."""
    kinds = [kind for kind in raised() if kind.__module__.startswith("rqueue.")]
    assert len(kinds) > 60
    for kind in kinds:
        name = f"{kind.__module__}.{kind.__name__}"
        error = failed(f"Traceback (most recent call last):\n{name}: it is so")
        for say in (notice_text, notice_line):
            say(Notice("waiting", error, 1.0))
            out, err = capsys.readouterr()
            assert "it is so" in out + err and (out + err).count("\n") == 1, name
        assert exit_code(kind.reported("it is so")) in range(1, 7), name
        assert str(kind.reported("it is so")) == "it is so"


def test_spark_that_is_gone() -> None:
    assert spark_is_gone(Py4JNetworkError("Answer from Java side is empty"))
    assert spark_is_gone(ConnectionRefusedError(111, "Connection refused"))
    assert not spark_is_gone(errors.ConnectionLost("Redis"))
    assert not spark_is_gone(failed("anything"))


def test_java_that_ends_while_the_session_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object, **__: object) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(import_module("rqueue.spark.session"), "session", dies)
    monkeypatch.setattr("rqueue.cli.pipeline.history_options._active", lambda: None)
    with pytest.raises(SparkGone, match="nothing is lost"), spark_session("local[1]"):
        pass


def test_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends after so long without progress; between two tries it waits longer and longer."""
    now = [100.0]
    monkeypatch.setattr(recovery.time, "monotonic", lambda: now[0])
    it, delays = Patience(60), []
    while (delay := it.failed(1.0)) is not None:
        delays.append(delay)
        now[0] += delay
    assert delays[:5] == [0.5, 1.0, 2.0, 4.0, 8.0] and max(delays) == 15.0
    assert sum(delays) == pytest.approx(60) and it.waited == pytest.approx(60)
    assert it.failed(1.0) is None
    assert it.failed(31.0) == 0.5  # it ran for a while: another matter
    it.progress()
    assert it.waited == 0.0
    assert Patience(0).failed(0.0) is None
