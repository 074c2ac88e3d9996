"""Which calls are alike, and what their enqueue answers."""

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError
from rqueue.tasks.decorator import task
from rqueue.tasks.options import Options
from rqueue.tasks.registry import Registry
from rqueue.tasks.unique import Unique
from tests.support.queue_fixture import QueueFixture, one_kind

registry = Registry()


@task(name="sync", registry=registry, unique=True)
def sync(account_id: int, full: bool = False) -> None: ...


@task(name="mail", registry=registry, unique=Unique("account_id", until="start"))
def mail(account_id: int, text: str = "") -> None: ...


@one_kind
def test_the_key_of_a_call(q: QueueFixture) -> None:
    """All arguments or some, however they are passed; tasks are told apart."""
    assert sync.unique_key(7) == sync.unique_key(account_id=7, full=False)
    assert len({sync.unique_key(7), sync.unique_key(8), sync.unique_key(7, full=True)}) == 3
    assert mail.unique_key(7, "a") == mail.unique_key(7, "b")
    assert mail.unique_key(7) != sync.options(unique=Unique("account_id")).unique_key(7)
    by_key = sync.options(unique=Unique(key=lambda a: a.account_id % 2))
    assert by_key.unique_key(1) == by_key.unique_key(3) != by_key.unique_key(2)
    with pytest.raises(ConfigError, match="no argument 'user'"):
        sync.options(unique=Unique("user"))
    with pytest.raises(ConfigError, match="is not unique"):
        sync.options(unique=False).unique_key(7)
    first, other = q.queue.enqueue(sync, 7), q.queue.enqueue(sync, account_id=7)
    assert other.id == first.id
    assert q.queue.enqueue(sync.options(unique=False), 7).created
    owner = q.queue.unique.owner(sync.unique_key(7))
    assert owner is not None
    assert owner.id == first.id
    assert q.queue.unique.clear(sync.unique_key(7)) is not None
    assert q.queue.unique.owner(sync.unique_key(7)) is None
    assert q.queue.enqueue(sync, 7).created
    with pytest.raises(ConfigError, match="is none"):
        q.queue.unique.owner("not a key")


@one_kind
@pytest.mark.parametrize("wrong", ["account_id", 7, Unique])
def test_what_is_no_unique_is_refused(q: QueueFixture, wrong: object) -> None:
    with pytest.raises(ConfigError, match="unique"):
        Options(unique=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"until": "never"}, {"until": 0}, {"on_conflict": "wait"}])
def test_a_unique_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        Unique(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="not both"):
        Unique("a", key="b")


@one_kind
def test_two_policies_that_exclude_each_other_are_named(q: QueueFixture) -> None:
    """Also where one job asks for both, and the queue for none."""
    with pytest.raises(ConfigError, match="last_value or the policy unique, not both"):
        q.queue.send("t", [], None, Options(unique=True, key="k"))
    assert q.look().jobs == {}


@one_kind
def test_a_queue_that_others_made_one_of_another_policy_says_what_to_do(q: QueueFixture) -> None:
    """As one meets it who gives a task of the default queue one more option."""
    q.put("j", group="g")
    q.queue.send("t", [], None, Options(unique=True, id="u"))
    with pytest.raises(ConfigError) as error:
        q.queue.send("t", [], None, Options(id="w", after=["j"]))
    assert str(error.value) == (
        f"flows: queue '{q.queue.name}': a queue has the policy flows or the policy unique, not"
        " both; let tasks with workflows and after=, or those with unique=, have another:"
        " task(queue=...)"
    )


def test_in_the_background_a_put_is_answered(server: EmbeddedRedis, queue_name: str) -> None:
    with Queue(queue_name, server.url) as queue:
        first = queue.enqueue(sync, 1)
        with queue.putter() as putter:
            put_ = putter.put(sync, 1)
            new = putter.put(sync, 2)
            with pytest.raises(ConfigError, match="background"):
                putter.put(sync.options(unique=Unique(on_conflict="raise")), 3)
        assert (put_.id, put_.created, put_.conflict) == (first.id, False, "ready")
        assert (new.created, new.conflict) == (True, "")


def test_a_signed_job_is_what_was_signed(server: EmbeddedRedis, queue_name: str) -> None:
    with Queue(queue_name, server.url, signing_keys={"k": "x" * 16}) as queue:
        handle = queue.enqueue(sync, 1)
        assert queue.enqueue(sync, 1).id == handle.id
        with queue.consumer(renew=False) as c:
            (job,) = c.pull()
            assert queue.envelope(job).task == "sync"
            assert job.header.unique == f"ex:{sync.unique_key(1)}"
