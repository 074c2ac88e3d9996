import os
import re
import string
import threading
import time
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rqueue.errors import InvalidName
from rqueue.model import ids
from rqueue.model.ids import ID_CHARACTERS, MAX_ID_BYTES, check_id, digits62, new_id, shortened
from rqueue.text.escape import steering

DIGITS = string.digits + string.ascii_letters.swapcase()


def fork() -> int:
    # From Python 3.12 on it warns if another test left a thread; the child only makes ids.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def ms_of(id: str) -> int:
    """The time in an id that was made here."""
    ms = 0
    for digit in id[:7]:
        ms = 62 * ms + DIGITS.index(digit)
    return ms


def test_an_id_is_short_plain_text_and_of_this_moment() -> None:
    before = time.time_ns() // 1_000_000
    made = new_id()
    after = time.time_ns() // 1_000_000
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9]{13}", made)
    assert before <= ms_of(made) <= after
    assert check_id(made) == made


def test_a_field_of_redis_holds_an_id_in_16_bytes() -> None:
    header, end = 1, 1
    assert header + ID_CHARACTERS + end == 16


def test_a_digit_is_greater_where_its_character_is() -> None:
    texts = [digits62(number, 3) for number in range(0, 62**3, 7)]
    assert texts == sorted(texts)
    assert (digits62(0, 5), digits62(61, 1), digits62(62**5 - 1, 5)) == ("00000", "z", "zzzzz")
    assert digits62(62**5 + 1, 5) == "00001", "the last digits"


def test_within_a_millisecond_ids_count_on(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = time.time_ns() + 10**15
    monkeypatch.setattr(ids, "time_ns", lambda: moment)
    made = [new_id() for _ in range(10_000)]
    assert made == sorted(set(made))
    assert len({id[:7] for id in made}) == 1
    ids._begin(ids._last_ms, 62**5 - 1)
    monkeypatch.setattr(ids, "_pair", 62**2 - 1)
    last, later = new_id(), new_id()
    assert (last[7:], last < later) == ("zzzzzzz", True), "the next millisecond is begun early"
    assert ms_of(later) == ms_of(last) + 1
    ids._forget()  # back to the present for the tests that follow


def test_numbers_begin_all_over_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """All 7 digits are drawn: a quarter of the starts lies in each quarter of the range."""
    moment = time.time_ns() + 10**15
    quarters = [0] * 4
    for step in range(4000):
        monkeypatch.setattr(ids, "time_ns", lambda step=step: moment + step * 1_000_000)
        new_id()
        quarters[4 * (ids._stem * 62**2 + ids._pair) // 62**7] += 1
    assert min(quarters) > 850
    ids._forget()


@given(st.lists(st.binary(min_size=16, max_size=16), min_size=2, max_size=2, unique=True))
def test_a_digest_has_an_id_of_its_own(digests: list[bytes]) -> None:
    one, other = map(shortened, digests)
    assert one != other
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9]{21}", one)


@pytest.mark.parametrize("size", range(1, 20))
def test_a_digest_is_as_short_as_its_bits_allow(size: int) -> None:
    least, most = shortened(b"\0" * size), shortened(b"\xff" * size)
    assert len(least) == len(most)
    assert 52 * 62 ** (len(most) - 1) >= 256**size > 52 * 62 ** (len(most) - 2)
    assert least[0].isalpha() and most[0].isalpha()


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
        tails.add(new_id()[7:])
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


@given(st.text(min_size=1, max_size=128).filter(lambda text: not steering(text)))
def test_any_text_without_control_characters_may_be_an_id(text: str) -> None:
    assert check_id(text) == text


@pytest.mark.parametrize(
    "text", ["a", " ", "é" * 256, "x" * MAX_ID_BYTES, "می‌خواهم", "👩‍💻", "a b"]
)
def test_ids_that_fit(text: str) -> None:
    assert check_id(text) == text


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("", "is empty"),
        ("x" * 513, "has 513 bytes"),
        ("é" * 257, "has 514 bytes"),
        ("\ud800", "lone surrogate"),
        ("\0", r"control character U\+0000"),
        ("a\nb", r"control character U\+000A"),
        ("\x1b[2J", r"'\\x1b\[2J' holds the control character U\+001B"),
        ("é\x9b1m", r"control character U\+009B"),
        ("x\u202ey", r"control character U\+202E"),
        (b"x", "not bytes"),
        (7, "not int"),
        (None, "not NoneType"),
    ],
)
def test_ids_that_do_not_fit(value: str, problem: str) -> None:
    with pytest.raises(InvalidName, match=problem):
        check_id(value)
