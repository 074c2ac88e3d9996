"""Schedules that the code declares with a task: `@task(schedules=[Schedule(...), ...])`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rqueue.errors import ConfigError
from rqueue.model.expect import expect, shown
from rqueue.model.unique_key import UniqueKey

if TYPE_CHECKING:
    from datetime import timedelta
    from zoneinfo import ZoneInfo

    from rqueue.model.schedule import Missed, Overlap, Timing
    from rqueue.tasks.bound_task import BoundTask

__all__ = ["Schedule", "check_schedules"]


class Schedule:
    """A schedule of a task, which its code declares: it is there as long as the code says so.

    name: its own, None: the task's. args, kwargs: of each call. cron, every, tz, missed, overlap,
    jitter, window: as of `Queue.schedules.set`. With neither cron nor every there is no schedule:
    `cron="@daily" if FLAG else None`. Raises ConfigError and InvalidName.
    """

    __slots__ = ("args", "kwargs", "name", "timing")

    name: str | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    timing: Timing | None

    def __init__(
        self,
        name: str | None = None,
        *,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        cron: str | Sequence[str] | None = None,
        every: timedelta | float | str | None = None,
        tz: str | ZoneInfo = "UTC",
        missed: Missed = "last",
        overlap: Overlap = "allow",
        jitter: timedelta | float | str = 0,
        window: timedelta | float | str = "1d",
    ) -> None:
        expect("args", args, (list, tuple), "a list of arguments")
        expect("kwargs", kwargs or {}, Mapping, "a dict of arguments by name")
        self.name = name
        self.args = tuple(args)
        self.kwargs = dict(kwargs or {})
        self.timing = None
        if name is None and cron is None and every is None:
            return
        # not before: a program without schedules need not load what knows cron and time zones
        from rqueue.model.schedule import Timing, check_schedule

        if name is not None:
            check_schedule(name)
        if cron is not None or every is not None:
            self.timing = Timing.of(cron, every, tz, missed, overlap, jitter, window)

    def __repr__(self) -> str:
        return f"<Schedule {self.name!r}>"


def check_schedules(
    task: BoundTask[..., Any], periodic: list[Schedule], given: Sequence[Schedule]
) -> tuple[Schedule, ...]:
    """Those of them that tick. periodic: of the task's own name. Raises ConfigError and
    BadArguments: what they are to enqueue could not be, or two have one name."""
    expect("schedules", given, (list, tuple), "a list of Schedule(...)")
    names = set()
    schedules = [*periodic, *given]
    for one in schedules:
        expect("schedules", one, Schedule, "a list of Schedule(...)")
        name = one.name or task.name
        if name in names:
            raise ConfigError("schedules", f"two are named {shown(name)}: give each a name")
        names.add(name)
        key = task.request(task.defaults, one.args, one.kwargs).options.unique
        if isinstance(key, UniqueKey) and key.replaces:
            why = f"the ticks say when a periodic job is due, not {key.on_conflict!r}"
            raise ConfigError("unique", why)
    return tuple(one for one in schedules if one.timing is not None)
