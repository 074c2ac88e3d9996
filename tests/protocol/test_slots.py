"""What the nodes of a cluster say of slots, and how long a call waits for one. No servers."""

import itertools

import pytest
from redis import exceptions as rx

from rqueue.errors import SlotBusy
from rqueue.protocol.error_mapping import translate
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.slots import Address, Redirection, SlotMap, SlotWait, redirection, slot_of

A, B = Address("10.0.0.1", 7001), Address("10.0.0.2", 7002)


def test_all_keys_of_a_queue_are_in_one_slot() -> None:
    keys = QueueKeys("orders", "shop")
    assert {slot_of(key) for key in (keys.meta, keys.guard, keys.wake("c"), keys.base)} == {
        slot_of("{orders}")
    }


def test_keys_that_are_no_text_have_a_slot_too() -> None:
    assert slot_of("{\udcff}x") == slot_of("\udcff")


@pytest.mark.parametrize(
    ("error", "means"),
    [
        (rx.MovedError("12 10.0.0.2:7002"), Redirection(12, B)),
        (rx.MovedError("12 :7002"), Redirection(12, Address("", 7002))),
        (rx.AskError("12 10.0.0.2:7002"), Redirection(12)),
        (rx.TryAgainError("Multiple keys request"), Redirection()),
        (rx.ClusterDownError("Hash slot not served"), Redirection()),
        (rx.MasterDownError("Link with MASTER is down"), None),
        (rx.ResponseError("ERR other"), None),
    ],
)
def test_what_an_error_says_of_a_slot(error: Exception, means: Redirection | None) -> None:
    assert redirection(error) == means


def test_what_redis_py_gave_up_passes_by_itself() -> None:
    found = translate(rx.ClusterError("TTL exhausted."))
    assert isinstance(found, SlotBusy)
    assert not found.outcome_unknown


def test_the_map_counts_its_changes() -> None:
    slots = SlotMap()
    rows = [[0, 99, [b"10.0.0.1", 7001, b"id"], [b"replica", 1, b"id"]], [100, 16383, [b"", 7002]]]
    slots.replace(rows, asked=B)
    assert slots.version == 1
    assert [slots.owner(slot) for slot in (0, 99, 100, 16383)] == [A, A, B, B]
    assert slots.addresses() == [A, B]
    slots.replace(rows, asked=B)
    slots.learn(99, A)
    assert slots.version == 1, "nothing is another than before"
    slots.learn(99, B)
    assert (slots.version, slots.owner(98), slots.owner(99)) == (2, A, B)
    slots.replace([[0, 5, ["?", 7001]]], asked=A)
    assert (slots.owner(5), slots.owner(6)) == (A, None)


def test_a_call_waits_a_fifth_of_a_second_for_its_slot() -> None:
    wait = SlotWait()
    pauses = list(itertools.takewhile(bool, (wait.pause(Redirection()) for _ in range(99))))
    assert pauses[:5] == [0.005, 0.01, 0.02, 0.04, 0.05]
    assert sum(p for p in pauses if p) == pytest.approx(0.2)


def test_to_where_a_slot_has_moved_a_call_goes_at_once_but_not_to_and_fro() -> None:
    wait = SlotWait()
    pauses = [wait.pause(Redirection(1, B)) for _ in range(20)]
    assert pauses[:3] == [0, 0.005, 0.01]
    assert pauses[-1] is None
