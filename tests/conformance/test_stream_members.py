"""What a stream takes, and what it refuses before anything of it is left behind."""

import tracemalloc
from typing import Any

import pytest

from rqueue.client._sync.workflows import WorkflowHandle
from rqueue.errors import ConfigError, NotEncodable
from rqueue.protocol import stream_packing
from rqueue.tasks.stream import stream
from rqueue.tasks.workflow import chain
from tests.support.queue_fixture import QueueFixture, one_kind
from tests.support.workflows import double, plus, total

DONE = plus.si(1, 1)


def send(q: QueueFixture, members: Any, id: str | None = None) -> WorkflowHandle[Any]:
    return q.queue.enqueue_workflow(stream(members, DONE), id=id)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: stream([double.s(1)], total.s()), "make it immutable"),
        (lambda: stream("text", DONE), "gives no calls"),
        (lambda: stream([double.s(1)], 3), "callback"),  # type: ignore[arg-type]
        (lambda: stream([double.s(1)], DONE, on_failure="no"), "none of"),  # type: ignore[arg-type]
        (lambda: chain(stream([double.s(1)], DONE), DONE), "before task 'plus', no part of others"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_stream(make: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make()


@one_kind
def test_what_is_no_member(q: QueueFixture) -> None:
    for member, said in (
        (chain(double.s(1), double.s()), "a call: task.s"),
        (double.s(1).on_success(double.s()), "no callbacks of its own"),
        (double, "a call: task.s"),
    ):
        with pytest.raises(ConfigError, match=said):
            send(q, [member], None)
    with pytest.raises(NotEncodable):
        send(q, [double.s(object())], None)
    with pytest.raises(ConfigError, match="a stream is of one queue"):
        q.queue.enqueue_workflow(stream([double.options(queue="other").s(1)], DONE), spread=True)
    assert q.queue.counts().more["deferred"] == 0


@one_kind
def test_a_million_is_the_most(q: QueueFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_packing, "PARENTS_MAX", 3)
    with pytest.raises(ConfigError, match="more than 3 members"):
        send(q, (double.s(n) for n in range(4)))
    assert send(q, (double.s(n) for n in range(3)), "v").ids[-1] == "v.2"


@one_kind
def test_a_stream_is_never_in_memory_as_a_whole(q: QueueFixture) -> None:
    """Some hundred members are, of however many: a list of these would take several MB."""
    send(q, [double.s(0)])  # what its scripts take is there
    tracemalloc.start()
    try:
        handle = send(q, (double.s(n) for n in range(5000)), "m")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(handle.ids) == 5001
    assert peak < 2_000_000, peak
