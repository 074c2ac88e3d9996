import inspect
import pickle

import pytest

from rqueue import errors
from rqueue.errors import RQueueError
from rqueue.tasks.retry import RetryPolicy

EXAMPLES: list[RQueueError] = [
    errors.ServerError("down", url="redis://***@h"),
    errors.RedisUnavailable("down"),
    errors.ConnectionLost("refused", url="redis://h:1"),
    errors.RedisTimeout("no answer in 5 s"),
    errors.RedisLoading("loading"),
    errors.RedisReadOnly("replica"),
    errors.RedisBusy("a script"),
    errors.SlotBusy("a slot of the cluster is being moved"),
    errors.RedisOutOfMemory("maxmemory"),
    errors.UnusableServer("no"),
    errors.AuthenticationFailed("wrong password"),
    errors.WrongServer("Redis 5.0 is too old", version="5.0"),
    errors.CommandRefused("ERR syntax error"),
    errors.EvictionPolicy("allkeys-lru"),
    errors.ScriptError("settle", "SCHEMA 2"),
    errors.ScriptSourceError("lua/x.lua:1: missing"),
    errors.EmbeddedRedisError("no redis-server here"),
    errors.ConfigError("lease", "too short"),
    errors.InvalidName("job id", "", "is empty"),
    errors.LifecycleError("closed"),
    errors.QueueError("no", queue="q"),
    errors.UnknownQueue("q"),
    errors.UnknownSchedule("s", "q"),
    errors.UnknownJob("j", queue="q"),
    errors.JobBlocked("j", "i", queue="q"),
    errors.TransactionRolledBack(("j",), queue="q"),
    errors.QueueDamaged("q", "rqueue:{q}:dead", "string", "zset"),
    errors.NoConsumer("q", "j"),
    errors.NotConfirmed("q", ("j",), replicas=0, wanted=1, within_ms=5),
    errors.QueueEmpty("q"),
    errors.QueueFull("q", 10, 8, granted=2, jobs=3, waits=True, waited=1.5),
    errors.BufferFull("q", 10, 1.5),
    errors.BufferClosed("q"),
    errors.ConsumerError("no", consumer="c", queue="q"),
    errors.QueueInUse("q", "3 jobs"),
    errors.ConsumerRefused("consumer 'c' is refused", consumer="c", queue="q"),
    errors.NotRegistered("c", queue="q"),
    errors.RegistrationLost("c", queue="q", term=3),
    errors.ConsumerGone("c", queue="q", term=3),
    errors.InvalidSelector("a >", 4, "a value is expected"),
    errors.StaleTerm("c", queue="q", term=3, current=5),
    errors.CodecError("no"),
    errors.NotEncodable("user.created", "mail", "set is not JSON; pass a list"),
    errors.NotKept("mail", "'charge': 70,002 bytes, at most 65,536 fit"),
    errors.Undecodable("not an envelope", b"\x80\x04"),
    errors.Unsigned("j"),
    errors.Forged("j", "key 'k2' is not known here", "k2"),
    errors.ResultError("no", id="j"),
    errors.ResultNotReady("j", "held"),
    errors.ResultTimeout("j", 1.5, "ready"),
    errors.ResultExpired("j"),
    errors.JobFailed("j", type="ValueError", remote_message="bad", remote_traceback="Tb\n"),
    errors.JobCancelled("j"),
    errors.JobPurged("j"),
    errors.ProducerLost("j"),
    errors.JobDisplaced("j"),
    errors.JobMoved("j", to="other"),
    errors.DuplicateJob("q", "j", "held"),
    errors.WorkflowEnded("q", "j"),
    errors.WorkflowExists("q", "w"),
    errors.StreamSealed("q", "j", total=3, said=2),
    errors.QueueSharded("q"),
    errors.ShardsMoving("q", "open 3"),
    errors.ShardsChanged("q~1", 3, 2, "q"),
    errors.JobExpired("j"),
    errors.TaskError("no", task="t"),
    errors.UnknownTask("ad", ["add"]),
    errors.TaskAlreadyRegistered("add", "a.py:1", "b.py:1"),
    errors.BadArguments("add", "missing a required argument: 'b'", "(a, b)"),
    RQueueError("anything"),
]


def everything() -> dict[str, type[RQueueError]]:
    return {
        name: kind
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, RQueueError)
    }


def test_every_error_has_an_example_is_exported_and_drawn() -> None:
    names = set(everything())
    assert {type(error).__name__ for error in EXAMPLES} == names
    assert set(errors.__all__) == {*names, "SoftTimeLimit"}
    drawn = [line.strip("│├└─ \n").split(" ")[0] for line in (errors.__doc__ or "").splitlines()]
    assert names <= set(drawn)


def test_the_drawing_shows_the_real_parents() -> None:
    parents: list[tuple[int, str]] = []
    seen = 0
    for line in (errors.__doc__ or "").splitlines():
        name = line.strip("│├└─ ").split(" ")[0]
        kind = everything().get(name)
        if kind is None:
            continue
        depth = line.index(name)
        while parents and parents[-1][0] >= depth:
            parents.pop()
        if parents:
            assert kind.__bases__[0].__name__ == parents[-1][1]
        parents.append((depth, name))
        seen += 1
    assert seen == len(everything())


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_errors_survive_pickling_with_their_facts(error: RQueueError) -> None:
    error.add_note("a note")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error) != ""
    assert vars(again) == vars(error)


def test_some_are_builtin_errors_too() -> None:
    assert isinstance(errors.ResultTimeout("j", 1, "ready"), TimeoutError)
    assert isinstance(errors.BadArguments("t", "p", "()"), TypeError)
    assert isinstance(errors.ConfigError("s", "p"), ValueError)


def test_a_soft_limit_is_nothing_that_a_library_handles() -> None:
    limit = errors.SoftTimeLimit("t", 2.0)
    assert not isinstance(limit, Exception)
    again = pickle.loads(pickle.dumps(limit))
    assert (type(again), str(again), vars(again)) == (type(limit), str(limit), vars(limit))
    for named in (OSError, TimeoutError, Exception):
        assert not RetryPolicy(retry_on=[named]).retries(limit)
    assert RetryPolicy(retry_on=[errors.SoftTimeLimit]).retries(limit)
    assert not RetryPolicy(give_up_on=[errors.SoftTimeLimit]).retries(limit)
    assert RetryPolicy().retries(limit)


def test_a_failed_job_shows_the_remote_traceback() -> None:
    error = errors.JobFailed(
        "j", type="app.Odd", remote_message="3", remote_traceback="Traceback ...\n", attempts=2
    )
    assert str(error) == (
        "job 'j' failed after 2 attempts: app.Odd: 3\n\nin the worker:\nTraceback ..."
    )
