"""Credit managers: the tables of Q-48 to Q-51, and what they say to the queue."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from rqueue.errors import ConfigError
from rqueue.protocol import credit as credits
from rqueue.protocol.commands.settle import Window
from rqueue.protocol.credit import UNLIMITED, Credit, GrantCredit, SharedCredit, WindowCredit

MANY = 2**31 - 1


def window_state(credit: WindowCredit) -> tuple[int, int, bool]:
    return credit.jobs, credit.bytes, credit.has_credit


def test_window_credit_begins_empty_and_needs_both() -> None:
    credit = WindowCredit(0, 0)
    assert window_state(credit) == (0, 0, False)
    credit.add(1, 0)
    assert window_state(credit) == (1, 0, False)  # jobs, but no bytes
    credit.add(0, 1)
    assert window_state(credit) == (1, 1, True)
    assert credit.use(1)
    assert window_state(credit) == (0, 0, False)


def test_window_credit_restored_after_a_clear_does_not_open_the_window() -> None:
    credit = WindowCredit(1, 1)
    assert credit.use(1)
    credit.clear()
    assert window_state(credit) == (0, 0, False)
    credit.restore(1, 1)
    assert window_state(credit) == (0, 0, False)  # QPID-3592
    credit.add(1, 1)
    assert window_state(credit) == (1, 1, True)


def test_window_credit_comes_back_and_never_below_zero() -> None:
    credit = WindowCredit(2, 100)
    assert credit.use(40)
    assert credit.use(60)
    assert not credit.use(1)
    credit.restore(1, 40)
    assert window_state(credit) == (1, 40, True)
    credit.restore(5, 500)
    assert window_state(credit) == (2, 100, True)


def test_window_credit_fits_strictly_but_for_the_first() -> None:
    credit = WindowCredit(10, 100)
    assert credit.use(300)  # with nothing held
    assert not credit.use(1)
    credit.restore(1, 300)
    assert credit.use(60)
    assert not credit.use(41)
    assert window_state(credit) == (9, 40, True)  # all or nothing
    assert credit.use(40)


def test_window_credit_without_limits() -> None:
    credit = WindowCredit(UNLIMITED, UNLIMITED)
    for _ in range(1000):
        assert credit.use(10**9)
    assert window_state(credit) == (UNLIMITED, UNLIMITED, True)
    assert credit.window(1000, 10**12) == Window(MANY, 0)
    half = WindowCredit(3)
    half.add(UNLIMITED, 5)
    assert window_state(half) == (UNLIMITED, UNLIMITED, True)


def test_grant_credit_only_goes_down() -> None:
    credit = GrantCredit(2, 100)
    assert credit.use(30)
    credit.restore(1, 30)
    assert (credit.jobs, credit.bytes, credit.has_credit) == (1, 70, True)
    assert credit.use(70)
    assert (credit.jobs, credit.bytes, credit.has_credit) == (0, 0, False)
    assert not credit.use(0)
    credit.add(1, 10)
    assert (credit.jobs, credit.bytes, credit.has_credit) == (1, 10, True)


@pytest.mark.parametrize(("jobs", "bytes"), [(0, 10), (10, 0), (0, UNLIMITED), (UNLIMITED, 0)])
def test_none_of_one_is_no_credit(jobs: int, bytes: int) -> None:
    assert not GrantCredit(jobs, bytes).has_credit
    assert not WindowCredit(jobs, bytes).has_credit
    for credit in (GrantCredit(jobs, bytes), WindowCredit(jobs, bytes)):
        assert credit.window(0, 0).jobs == 0
        assert not credit.use(0)


def test_grant_credit_without_limits_stays_so() -> None:
    credit = GrantCredit(UNLIMITED, UNLIMITED)
    assert credit.use(10**9)
    credit.add(5, 5)
    assert (credit.jobs, credit.bytes) == (UNLIMITED, UNLIMITED)
    assert credit.window(1, 10**9) == Window(MANY, 0)
    credit.clear()
    assert not credit.has_credit


def test_grant_credit_counts_what_came_not_what_was_asked_for() -> None:
    credit = GrantCredit(3, 100)
    for _ in range(5):  # pulls that find nothing
        assert credit.window(0, 0) == Window(3, 100)
    credit.take(40)
    assert credit.window(1, 40) == Window(3, 100)
    credit.restore(1, 40)
    assert credit.window(0, 0) == Window(2, 60)
    credit.take(60)
    assert credit.window(1, 60).jobs == 1  # no bytes: nothing more
    assert credit.narrows


def test_the_first_job_may_be_larger_than_a_grant() -> None:
    credit = GrantCredit(5, 10)
    assert credit.use(500)
    assert (credit.jobs, credit.bytes) == (4, 0)


@pytest.mark.parametrize("kind", [WindowCredit, GrantCredit, SharedCredit])
def test_wrong_credit_is_refused(kind: Callable[..., Any]) -> None:
    for jobs, bytes in ((-2, 0), (0, -2), (1.5, 0), (True, 0), ("1", 0)):
        with pytest.raises(ConfigError):
            kind(jobs, bytes)
    credit = kind(1, 1)
    with pytest.raises(ConfigError):
        credit.add(-5)


# -- shared ----------------------------------------------------------------------------------------


def pulls(credit: Credit, held: int, *sizes: int) -> int:
    """A pull that finds jobs of these sizes; how many it takes."""
    window, taken = credit.window(held, 0), 0
    for size in sizes:
        if held + taken >= window.jobs:
            break
        credit.take(size)
        taken += 1
    return taken


def test_shared_credit_is_one_window() -> None:
    shared = SharedCredit(10)
    a, b = shared.join(), shared.join()
    assert pulls(a, 0, *[1] * 20) == 9  # a job's credit is left for b
    assert pulls(b, 0, *[1] * 20) == 1
    assert (shared.jobs_used, shared.has_credit) == (10, False)
    a.restore(9, 9)
    assert shared.has_credit


def test_shared_credit_evens_out_when_both_are_busy() -> None:
    shared = SharedCredit(10)
    a, b = shared.join(), shared.join()
    pulls(a, 0, *[1] * 9)
    pulls(b, 0, 1)
    a.restore(9, 9)
    assert pulls(a, 0, *[1] * 20) == 5  # b could take more than it was offered
    b.restore(1, 1)
    assert pulls(b, 0, *[1] * 20) == 5
    assert shared.jobs_used == 10


def test_shared_credit_that_waits_keeps_credit_for_one() -> None:
    shared = SharedCredit(10)
    a, b = shared.join(), shared.join()
    assert a.window(0, 0) == Window(9, 0)
    assert a.idle(0, 0) == Window(1, 0)
    assert b.window(0, 0) == Window(9, 0)
    assert a.idle(0, 0) is None  # is so already


def test_shared_credit_never_offers_more_than_there_is() -> None:
    shared = SharedCredit(7)
    members = [shared.join() for _ in range(3)]
    held = [0, 0, 0]
    for turn in range(300):
        who = turn * 7 % 3
        held[who] += pulls(members[who], held[who], *[1] * (turn % 9))
        offered = sum(max(member.offered.jobs, member.jobs) for member in shared._members)
        assert shared.jobs_used == sum(held)
        assert sum(held) <= 7
        assert offered <= 7
        back = min(held[who], turn % 4)
        members[who].restore(back, back)
        held[who] -= back


def test_shared_bytes() -> None:
    shared = SharedCredit(10, 1000)
    a, b = shared.join(), shared.join()
    assert a.window(0, 0) == Window(9, 1000)
    a.take(900)
    assert a.window(1, 900) == Window(9, 1000)
    assert b.window(0, 0).bytes == 1  # room for one job of any size, with nothing held
    a.restore(1, 900)
    assert a.idle(0, 0) == Window(1, 1)
    assert b.window(0, 0) == Window(9, 999)


def test_shared_credit_when_consumers_come_and_go() -> None:
    shared = SharedCredit(2)
    a = shared.join()
    b = shared.join()
    with pytest.raises(ConfigError, match="2 jobs do not suffice for 3 consumers"):
        shared.join()
    a.take(1)
    assert b.window(0, 0).jobs == 1
    a.leave()
    a.leave()
    assert shared.jobs_used == 0
    assert b.window(0, 0).jobs == 2
    b.clear()
    assert b.window(0, 0).jobs == 0
    c = shared.join()
    assert c.window(0, 0).jobs == 2  # who stopped keeps none


def test_what_was_offered_to_one_whose_registration_was_lost_is_others() -> None:
    shared = SharedCredit(10, 1000)
    a, b = shared.join(), shared.join()
    assert pulls(a, 0, *[10] * 20) == 9
    a.forget()
    assert (shared.jobs_used, shared.bytes_used) == (0, 0)
    assert b.window(0, 0) == Window(9, 1000)
    assert a.window(0, 0).jobs == 1  # which it is sure to get when it is registered again


class Part:
    """One consumer that shares credit: what it was given a window for, and what it holds."""

    def __init__(self, credit: Credit) -> None:
        self.credit = credit
        self.registered = False
        self.window = Window(0, 0)
        self.held = 0

    @property
    def may_hold(self) -> int:
        """What the queue may let it hold, without asking."""
        return max(self.held, self.window.jobs) if self.registered else 0

    def ask(self) -> None:
        self.window = self.credit.window(self.held, self.held)

    def act(self, random: Random) -> None:
        what = random.choice(["ask", "get", "get", "settle", "wait", "lose"])
        if not self.registered:
            self.ask()
            self.registered = True
        elif what == "ask":
            self.ask()
        elif what == "get" and self.held < self.window.jobs:
            self.held += 1
            self.credit.take(1)
        elif what == "settle" and self.held:
            self.held -= 1
            self.credit.restore(1, 1)
        elif what == "wait":
            self.window = self.credit.idle(self.held, self.held) or self.window
        elif what == "lose":
            self.credit.forget()
            self.registered, self.held = False, 0


def shared_at_random(seed: int) -> None:
    """Consumers that share credit, and lose their registrations."""
    random = Random(seed)
    shared = SharedCredit(7)
    parts = [Part(shared.join()) for _ in range(3)]
    for _ in range(200):
        random.choice(parts).act(random)
        assert sum(part.may_hold for part in parts) <= 7
        assert shared.jobs_used == sum(part.held for part in parts)
    me, *others = parts
    for part in others:
        if part.registered:
            part.credit.forget()
    me.ask()
    assert me.window.jobs == 7 - len(others), "the rest is for who is there"


@pytest.mark.parametrize("seed", range(20))
def test_nothing_of_shared_credit_is_lost_with_a_registration(seed: int) -> None:
    shared_at_random(seed)


def _keeps_its_offer(member: Any) -> None:
    member.restore(member.jobs, member.bytes)


def _keeps_what_it_held(member: Any) -> None:
    member.offered = Window(0, 0)


def _stays_hungry(member: Any) -> None:
    member.jobs, member.bytes, member.offered = 0, 0, Window(0, 0)


@pytest.mark.parametrize("fault", [_keeps_its_offer, _keeps_what_it_held, _stays_hungry])
def test_a_fault_of_that_is_found(
    fault: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credits._Member, "forget", fault)
    with pytest.raises(AssertionError):
        for seed in range(20):
            shared_at_random(seed)
