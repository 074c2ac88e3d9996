import pytest
from hypothesis import given
from hypothesis import strategies as st

from rqueue.errors import Undecodable
from rqueue.model.job import (
    EPOCH_MS,
    Delivery,
    Header,
    JobState,
    Outcome,
    delivered_before,
    has_crashed,
    is_mark,
    parse_header,
    parse_value,
    sort_key,
)
from rqueue.protocol.commands.repair import level_in, order_in
from rqueue.spark.jobs.pages import place_of

NUMBER = st.integers(min_value=-(2**53), max_value=2**53)


@given(NUMBER, NUMBER, st.binary())
def test_the_short_header_means_defaults(position: int, enqueued: int, body: bytes) -> None:
    header, rest = parse_value(b"%d,%d;" % (position, enqueued) + body)
    assert header == Header(position, EPOCH_MS + enqueued, 4, 0, 0, 0, 0)
    assert type(header) is Header
    assert rest == body


LONGER = st.sampled_from([7, 9, 10]).flatmap(lambda n: st.lists(NUMBER, min_size=n, max_size=n))


@given(LONGER, st.binary())
def test_the_longer_headers(numbers: list[int], body: bytes) -> None:
    header, rest = parse_value(",".join(map(str, numbers)).encode() + b";" + body)
    assert header == Header(numbers[0], EPOCH_MS + numbers[1], *numbers[2:])
    assert rest == body


HEADS = {
    b"5,100": Header(5, EPOCH_MS + 100),
    b"5,-100,7,0,0,0,0": Header(5, EPOCH_MS - 100, 7),
    b"5,100,4,1,1,0,1795357154383": Header(5, EPOCH_MS + 100, 4, 1, 1, 0, 1795357154383),
    b"5,100,7,2,1,0,0,1,0": Header(5, EPOCH_MS + 100, 7, 2, 1, 0, 0, 1, 0),
    b"5,100,4,0,0,0,1795357154383,0,5": Header(
        5, EPOCH_MS + 100, due_ms=1795357154383, max_crashes=5
    ),
    b"5,100,4,0,0,0,0,0,0,1795357154383": Header(5, EPOCH_MS + 100, expires_ms=1795357154383),
    b"5,100,4,2,01,0,1795357154383,00,0": Header(5, EPOCH_MS + 100, 4, 2, 1, 0, 1795357154383),
}
"""Of every length that there is."""


@pytest.mark.parametrize("head", HEADS)
def test_all_who_read_a_header_read_the_same(head: bytes) -> None:
    header = HEADS[head]
    assert parse_header(head) == header
    assert parse_value(head + b";[]") == (header, b"[]")
    order = (header.due_ms, header.position)
    assert sort_key(head) == order_in(head.decode()) == order
    assert level_in(head.decode()) == header.level
    assert place_of(head + b";[]") == header.due_ms << 53 | header.position
    assert has_crashed(head + b";[]") == (header.crashes > 0)
    assert delivered_before(head) == (header.deliveries > 0)


@pytest.mark.parametrize("count", [0, 1, *range(3, 7), 8, 11, 12])
def test_no_header_has_another_length(count: int) -> None:
    head = b",".join([b"1"] * count)
    assert parse_header(head) is None
    assert sort_key(head) is None
    assert order_in(head.decode()) is None
    assert place_of(head + b";[]") == 0
    assert not has_crashed(head + b";[]")
    assert not delivered_before(head)
    with pytest.raises(Undecodable):
        parse_value(head + b";[]")


def test_a_mark_stands_where_its_job_stood() -> None:
    assert sort_key(b"!7,0") == (0, 7)
    assert sort_key(b"!7,1795357154383") == order_in("!7,1795357154383") == (1795357154383, 7)
    for broken in (b"!", b"!7", b"!7,", b"!,7", b"!x,y", b"!7,1,2", b"!-7,1"):
        assert sort_key(broken) is None


@pytest.mark.parametrize(
    "value", [b"", b";", b"1;[]", b"1,2", b"1,x;", b"1,2,3,4,5,6,7,8,9,10,11;", b"!"]
)
def test_values_without_a_header(value: bytes) -> None:
    with pytest.raises(Undecodable):
        parse_value(value)
    with pytest.raises(Undecodable):
        _ = Delivery("j", value).position


@given(st.binary())
def test_any_bytes_are_a_value_or_undecodable(value: bytes) -> None:
    try:
        header, body = parse_value(value)
    except Undecodable:
        return
    assert value.endswith(b";" + body)
    assert len(header) == len(Header._fields)


def test_a_delivery() -> None:
    delivery = Delivery("j\0é".encode(), b"-3,1700000000000,9,2,1,10,1700000000005;[1;2]")
    assert delivery.id == "j\0é"
    assert delivery.body == b"[1;2]"
    assert delivery.position == -3
    assert delivery.enqueued_ms == EPOCH_MS + 1700000000000
    assert delivery.level == 9
    assert delivery.deliveries == 2
    assert delivery.attempts == 1
    assert delivery.max_deliveries == 10
    assert delivery.due_ms == 1700000000005
    assert delivery.redelivered
    assert delivery == Delivery("j\0é", delivery.value)
    assert delivery != Delivery("k", delivery.value)
    assert not Delivery("j", b"1,2;").redelivered


def test_the_body_does_not_need_a_good_header() -> None:
    assert Delivery("j", b"odd;body").body == b"body"
    with pytest.raises(Undecodable):
        _ = Delivery("j", b"odd").body


def test_marks() -> None:
    assert is_mark(b"!12")
    assert not is_mark(b"1,2;")


def test_states_and_outcomes_are_words() -> None:
    assert f"{JobState.READY}" == "ready"
    assert f"{Outcome.RELEASE}" == "release"
    assert not JobState.HELD.ended
