import pickle
from datetime import timedelta
from typing import Any

import pytest

from rqueue.errors import RQueueError
from rqueue.tasks.control import Control, Reject, Retry, Snooze


def test_they_are_no_errors_of_rqueue() -> None:
    assert not issubclass(Control, RQueueError)
    assert issubclass(Control, Exception)


def test_what_they_carry() -> None:
    assert Retry().after is None
    assert Retry(timedelta(minutes=1), "busy").after == 60.0
    assert Snooze(5).seconds == 5.0
    assert str(Retry(1.5, "busy")) == "retry after 1.5 s: busy"
    assert str(Retry()) == "retry"
    assert str(Reject("no such user")) == "rejected: no such user"
    assert str(Snooze(60)) == "snoozed for 60 s"


@pytest.mark.parametrize("control", [Retry(2, "x"), Retry(), Reject("y"), Snooze(3, "z")], ids=str)
def test_they_survive_pickling(control: Control) -> None:
    again = pickle.loads(pickle.dumps(control))
    assert type(again) is type(control)
    assert vars(again) == vars(control)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), 10**400])
def test_times_that_cannot_be(seconds: float) -> None:
    with pytest.raises(ValueError, match="finite and not negative"):
        Retry(seconds)
    with pytest.raises(ValueError, match="finite and not negative"):
        Snooze(seconds)


@pytest.mark.parametrize("seconds", ["1", True, None])
def test_what_is_no_time(seconds: Any) -> None:
    with pytest.raises(TypeError, match="seconds or a timedelta"):
        Snooze(seconds)
