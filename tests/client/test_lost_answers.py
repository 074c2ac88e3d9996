"""An answer that was lost stays lost, whatever is answered to the repetition."""

import asyncio
from collections.abc import Iterator

import pytest

from rqueue import Options, errors
from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Queue
from rqueue.inspector import Inspector
from rqueue.protocol import commands
from rqueue.transport.redis_client import execute
from tests.client.every_call import (
    HANDLE,
    OF_SCRIPTS,
    QUEUE,
    REPLIES,
)
from tests.support.patience import PATIENCE
from tests.support.stub_server import StubServer

pytestmark = pytest.mark.usefixtures("no_long_pauses")

# -- an answer that was lost stays lost ------------------------------------------------------------


@pytest.fixture(
    params=[
        said
        for said, error in REPLIES.items()
        if error not in (OF_SCRIPTS, errors.QueueDamaged, errors.ConnectionLost)
        # not of the server, or lost as well
    ]
)
def forgetful(request: pytest.FixtureRequest) -> Iterator[StubServer]:
    """Loses one answer, and refuses everything from then on: a server that died and came back."""
    with StubServer(f"-{request.param}\r\n".encode()) as stub:
        yield stub


def test_a_refusal_after_a_lost_answer_leaves_the_outcome_open(forgetful: StubServer) -> None:
    with Queue("q", forgetful.url) as queue:
        calls = {name: (lambda call=call: call(queue)) for name, call in QUEUE.items()}
        job = queue.job("x")
        confirmed = Options(replicas=1, confirm_ms=5)
        calls["confirmed"] = lambda: queue.send("t", options=confirmed)
        calls |= {f"job.{name}": (lambda call=call: call(job)) for name, call in HANDLE.items()}
        for name, action in calls.items():
            forgetful.lose = 1
            with pytest.raises(errors.ConnectionLost) as caught:
                action()
            assert caught.value.outcome_unknown, name
            assert forgetful.lose == 0


def test_the_same_of_the_asyncio_client(forgetful: StubServer) -> None:
    async def work() -> None:
        async with AsyncQueue("q", forgetful.url) as queue:
            for name, call in QUEUE.items():
                if name != "enqueue_request":
                    forgetful.lose = 1
                    with pytest.raises(errors.ConnectionLost) as caught:
                        await call(queue)  # type: ignore[arg-type, misc]
                    assert caught.value.outcome_unknown, name

    asyncio.run(work())


def test_the_same_of_background_puts(forgetful: StubServer) -> None:
    """What is given up for good after a lost answer may be stored: the error says so."""
    refusal = REPLIES[forgetful.reply.decode()[1:].strip()]
    if issubclass(refusal, errors.RedisUnavailable):
        return  # that is waited for, and the jobs are kept
    forgetful.lose = 1
    with Queue("q", forgetful.url) as queue:
        putter = queue.putter()
        with pytest.raises(errors.ConnectionLost) as caught:
            putter.put("t").wait_stored(PATIENCE)
        assert caught.value.outcome_unknown
        putter.close()


def test_the_same_of_an_inspector(forgetful: StubServer) -> None:
    """Its connections are redis-py's, which repeats by itself."""
    with Inspector(forgetful.url) as inspector:
        forgetful.lose = 1
        with pytest.raises(errors.ConnectionLost) as caught:
            execute(inspector.redis, commands.pause(inspector.keys("q")))
        assert caught.value.outcome_unknown


def test_what_was_never_sent_was_not_done() -> None:
    with Queue("q", "redis://127.0.0.1:1/0") as queue:
        with pytest.raises(errors.ConnectionLost) as caught:
            queue.pause()
        assert not caught.value.outcome_unknown
