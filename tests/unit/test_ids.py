import os
import threading
import time
import uuid
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rqueue import ids
from rqueue.errors import InvalidName
from rqueue.ids import MAX_ID_BYTES, check_id, new_id


def fork() -> int:
    # From Python 3.12 on it warns if another test left a thread; the child only makes ids.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def test_an_id_is_a_canonical_uuid7_of_this_moment() -> None:
    before = time.time_ns() // 1_000_000
    text = new_id()
    after = time.time_ns() // 1_000_000
    made = uuid.UUID(text)
    assert str(made) == text
    assert made.version == 7
    assert made.variant == uuid.RFC_4122
    assert before <= made.int >> 80 <= after


def test_ids_grow_and_never_repeat() -> None:
    made = [new_id() for _ in range(50_000)]
    assert made == sorted(set(made))


def test_ids_grow_when_the_clock_steps_back(monkeypatch: pytest.MonkeyPatch) -> None:
    first = new_id()
    monkeypatch.setattr(ids, "time_ns", lambda: 1_000_000_000)
    assert first < new_id() < new_id()


def test_ids_of_different_milliseconds_share_no_random_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moment = time.time_ns() + 10**15
    tails = set()
    for step in range(1000):
        monkeypatch.setattr(ids, "time_ns", lambda step=step: moment + step * 1_000_000)
        tails.add(new_id()[14:])
    assert len(tails) == 1000
    ids._forget()  # back to the present for the tests that follow


def test_threads_never_make_the_same_id() -> None:
    made: list[list[str]] = [[] for _ in range(4)]

    def make(into: list[str]) -> None:
        into.extend(new_id() for _ in range(5000))

    threads = [threading.Thread(target=make, args=(part,)) for part in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id for part in made for id in part}) == 20_000
    assert all(part == sorted(part) for part in made)


def test_a_forked_child_makes_other_ids() -> None:
    new_id()
    reading, writing = os.pipe()
    child = fork()
    if child == 0:
        os.write(writing, "\n".join(new_id() for _ in range(500)).encode())
        os._exit(0)
    os.close(writing)
    parents = {new_id() for _ in range(500)}
    with os.fdopen(reading) as pipe:
        childs = set(pipe.read().split())
    os.waitpid(child, 0)
    assert len(childs) == 500
    assert not parents & childs


def test_a_child_forked_while_the_lock_is_held_is_not_stuck() -> None:
    with ids._lock:
        child = fork()
        if child == 0:
            new_id()
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


@given(st.text(min_size=1, max_size=128))
def test_any_text_may_be_an_id(text: str) -> None:
    assert check_id(text) == text


@pytest.mark.parametrize("text", ["a", "\0", " ", "a\nb", "é" * 256, "x" * MAX_ID_BYTES])
def test_ids_that_fit(text: str) -> None:
    assert check_id(text) == text


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("", "is empty"),
        ("x" * 513, "has 513 bytes"),
        ("é" * 257, "has 514 bytes"),
        ("\ud800", "lone surrogate"),
        (b"x", "not bytes"),
        (7, "not int"),
        (None, "not NoneType"),
    ],
)
def test_ids_that_do_not_fit(value: str, problem: str) -> None:
    with pytest.raises(InvalidName, match=problem):
        check_id(value)
