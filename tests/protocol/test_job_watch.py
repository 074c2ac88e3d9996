"""What one sees who watches a job, by what its looks show; without Redis."""

import pytest

from rqueue.model.job import JobState
from rqueue.model.progress import JobUpdate, Progress
from rqueue.protocol.commands.reports import Watched
from rqueue.protocol.job_watch import JobWatch
from rqueue.protocol.keys import QueueKeys

HALF = Progress(1, 2, "half", 1000, 1)


def seen(state: JobState, progress: Progress | None) -> Watched:
    return Watched("1-0", state, progress, ())


def watcher() -> JobWatch:
    return JobWatch(QueueKeys("q"), "job", None, None)


@pytest.mark.parametrize("state", [JobState.CANCELLED, JobState.DEAD, JobState.PURGED])
def test_how_far_a_job_came_is_said_though_its_worker_has_tidied_up(state: JobState) -> None:
    watch = watcher()
    assert watch.heard(seen(JobState.HELD, HALF)) == JobUpdate(JobState.HELD, HALF)
    assert watch.heard(seen(state, None)) == JobUpdate(state, HALF)
    assert watch.over


def test_a_job_that_is_done_does_not_say_how_far_it_is() -> None:
    watch = watcher()
    watch.heard(seen(JobState.HELD, HALF))
    assert watch.heard(seen(JobState.DONE, None)) == JobUpdate(JobState.DONE, None)


def test_what_was_not_seen_is_not_said() -> None:
    assert watcher().heard(seen(JobState.DEAD, None)) == JobUpdate(JobState.DEAD, None)


def test_the_same_is_said_once() -> None:
    watch = watcher()
    watch.heard(seen(JobState.HELD, HALF))
    assert watch.heard(seen(JobState.HELD, HALF)) is None
