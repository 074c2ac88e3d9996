"""Rates as tasks and calls name them, and as people look at them."""

from typing import Any

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.errors import ConfigError
from rqueue.model.job_limit import JobLimit
from rqueue.tasks.decorator import task
from rqueue.tasks.limits import Concurrency, Rate
from rqueue.tasks.options import Options
from rqueue.tasks.registry import Registry
from rqueue.testing import move_time
from tests.support.queue_fixture import QueueFixture, ids, one_kind

registry = Registry()


@task(name="call", registry=registry, limit=[Concurrency(2), Rate(100, per="1m", cost="tokens")])
def call(tenant: str = "acme", tokens: int = 7) -> None: ...


def named(*args: Any, **options: Any) -> tuple[Any, ...]:
    return call.options(**options).request(call.options(**options).defaults, args, {}).options.limit


def test_a_call_says_what_it_costs_by_its_arguments() -> None:
    assert named() == (JobLimit("call", 2), JobLimit("call", 100, "", 60_000, 0, 7))
    rate = Rate(9, 1.5, key="tenant", burst=3, cost=lambda call: 2 * call.tokens, name="api")
    assert named("evil", 4, limit=rate) == (JobLimit("api", 9, "evil", 1500, 3, 8),)
    assert repr(Rate(9, "1s", "tenant", burst=3)) == "Rate(9, per=1, key='tenant', burst=3)"
    assert Rate(9, "1s") == Rate(9, 1) != Rate(9, 2)


@pytest.mark.parametrize("name", ["@", "a=b", "ü", "100/60+1*1"])
def test_the_text_of_a_rate_says_all_of_it(name: str) -> None:
    rate = JobLimit(name, 9, name, 1500, 3, 8)
    assert JobLimit.parse(rate.text) == rate
    assert JobLimit.parse(JobLimit(name, 9).text) == JobLimit(name, 9)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Rate(0, "1m"),
        lambda: Rate(1, "12d"),
        lambda: Rate(1, 0),
        lambda: Rate(1, "soon"),
        lambda: Rate(1, "1m", burst=0),
        lambda: Rate(1, "1m", cost=-1),
        lambda: named("acme", "many"),
        lambda: named(limit=Rate(1, "1m", cost="nobody")),
        lambda: named(limit=[Rate(1, "1m"), Rate(2, "1m")]),
    ],
)
def test_what_is_no_rate_is_refused(make: Any) -> None:
    with pytest.raises(ConfigError):
        make()


@one_kind
def test_a_rate_and_a_limit_of_one_name_are_two(q: QueueFixture) -> None:
    rate = JobLimit("api", 1, "k", 3_600_000)
    q.put("a", "b", "c", limit=(rate, JobLimit("api", 2, "k")))
    c = q.join()
    assert ids(c.pull()) == ["a"]
    limit, found = q.queue.limits.list()
    assert (limit.rate, limit.out, limit.waiting, limit.next_ms) == (False, 1, 0, 0)
    assert (found.rate, found.out, found.waiting) == (True, 0, 2) and found.next_ms > 0
    q.queue.limits.set("api", 5, key="k")
    assert ids(c.pull()) == []
    q.queue.limits.set("api", 7, per="1s", burst=9, key="k")
    assert [(one.most, one.per_ms, one.burst) for one in q.queue.limits.list()] == [
        (5, 0, 0),
        (7, 1000, 9),
    ]
    # the bucket was empty, and fills at the new pace
    move_time(q.queue, 300)
    assert ids(c.pull()) == ["b", "c"]
    assert q.queue.limits.reset("api", key="k")
    with pytest.raises(ConfigError, match="say `per`"):
        q.queue.limits.set("api", 5, burst=2)


@one_kind
def test_a_signed_job_keeps_its_rate(q: QueueFixture) -> None:
    rate, keys = JobLimit("api", 1, "a b", 1000, 2, 3), {"k": "x" * 16}
    with Queue(q.queue.name, redis=q.queue.redis, signing_keys=keys) as signed:
        signed.send("call", [1], options=Options(id="x", limit=rate))
        with signed.consumer() as consumer:
            (job,) = consumer.pull()
            assert signed.envelope(job).args == [1]
            assert job.header.limits == ("@api=a%20b:1/1000+2*3",)
