"""What the jobs of one consumer report while they run, until it is sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from secrets import token_hex
from time import monotonic
from typing import Any

from rqueue.errors import LifecycleError, RegistrationLost
from rqueue.model.locks import new_lock
from rqueue.model.log_line import packed_line
from rqueue.model.progress import Report, packed
from rqueue.protocol import commands
from rqueue.protocol.commands.reports import LINES_MOST, OVER_MOST, REPORTS_MOST, JobReport
from rqueue.protocol.consumer_state import ConsumerState
from rqueue.protocol.course import Calls, run_course
from rqueue_workers.worker.reporter import Reporter


class AttemptReport:
    """Of one attempt: how far it is, the last word in place of the one before, and its lines."""

    __slots__ = (
        *("_count", "_guard", "_lines", "_of", "_token"),
        *("delivery", "fresh", "id", "over", "said", "sent"),
    )

    def __init__(self, of: Reports, id: str, delivery: int) -> None:
        self._of = of
        self.id = id
        self.delivery = delivery
        self.said: Report | None = None
        self._lines: deque[bytes] = deque()
        self._count = 0
        self._guard = new_lock()
        self._token = token_hex(4)
        self.fresh = False
        """Whether there is something that is not sent yet."""
        self.sent = False
        """Whether Redis may have something of it: known before it has, as the job may have ended
        before the reply is read."""
        self.over = False

    def progress(self, report: Report) -> None:
        """This is how far it is. From any thread. Raises LifecycleError in a process that the job
        forked."""
        if self.over:
            return
        self.said = report
        self._tell()

    def log(self, level: int, text: str) -> None:
        """A line. From any thread. Raises as `progress`."""
        if self.over:
            return
        line = packed_line(self._of.now_ms(), level, text)
        with self._guard:
            self._count += 1
            self._lines.append(line)
            if len(self._lines) > LINES_MOST:
                self._lines.popleft()
        self._tell()

    def _tell(self) -> None:
        if not self.fresh:
            self.fresh = True  # first: who sends it meanwhile takes it away
            try:
                self._of.tell()
            except LifecycleError:
                self.fresh = False
                raise

    @property
    def logged(self) -> bool:
        """Whether there are lines that are not sent."""
        return bool(self._lines)

    def taken(self, most: int) -> JobReport:
        """What is to be sent now, with so many lines."""
        with self._guard:
            self.fresh = False  # first: what is said from here on is new
            self.sent = True
            first = self._count - len(self._lines) + 1
            lines = tuple(islice(self._lines, most))
        said = b"" if self.said is None else packed(self.said)
        return JobReport(self.id, self.delivery, said, self._token, first, lines)

    def arrived(self, report: JobReport) -> None:
        """That was sent."""
        last = report.first + len(report.lines) - 1
        with self._guard:
            while self._lines and self._count - len(self._lines) < last:
                self._lines.popleft()


class Reports:
    """From any thread, except where a method says otherwise."""

    def __init__(self, consumer: ConsumerState, reporter: Reporter) -> None:
        self._consumer = consumer
        self._reporter = reporter
        self.open: dict[bytes, AttemptReport] = {}
        """Of jobs that are not settled; to be looked at."""
        self._over: deque[str] = deque()
        """Jobs of which an attempt has ended that had reported."""

    def of(self, id: str, delivery: int) -> AttemptReport:
        """The report of a job that runs; of one that is not held any more it is over."""
        key = id.encode()
        report = self.open.get(key)
        if report is None or report.delivery != delivery:
            report = AttemptReport(self, id, delivery)
            if key in self._consumer.unsettled:
                self.open[key] = report
            else:
                report.over = True
        return report

    def now_ms(self) -> int:
        """By Redis's clock."""
        return self._consumer.clock.ms(monotonic())

    def tell(self) -> None:
        """There is something to be sent."""
        self._reporter.tell(self)

    def send(self, run: Callable[..., Any]) -> None:
        """Send what is new. Raises the tree of `rqueue.errors`."""
        with self._reporter.sending():
            held = self._consumer.unsettled
            fresh = [one for key, one in list(self.open.items()) if one.fresh and key in held]
            of = {"queue": self._consumer.keys.queue, "consumer": self._consumer.name}
            run_course(
                self._sending([one for one in fresh if not one.over]),
                lambda call: run(call, **of),
            )

    def ending(self, ended: Iterable[bytes], failed: Iterable[bytes]) -> Calls[None]:
        """These attempts are about to be settled: nothing more is sent of them, but their lines,
        and how far those came that failed."""
        reports = [one for id_ in ended if (one := self.open.get(id_))]
        for one in reports:
            one.over = True
        failures = {self.open.get(id_) for id_ in failed}
        with self._reporter.quiet():  # what was being sent has arrived
            last = [one for one in reports if one.logged or (one.fresh and one in failures)]
            yield from self._sending(last)

    def settled(self, ids: Iterable[bytes]) -> None:
        """These attempts are settled, or their jobs were cancelled."""
        news = False
        for id_ in ids:
            report = self.open.pop(id_, None)
            if report is not None:
                report.over = True
                if report.sent:
                    news = True
                    self._over.append(report.id)
        if news:
            self._reporter.tell(self)

    def finishing(self) -> Calls[None]:
        """The consumer is about to leave: of which jobs an attempt has ended is said now."""
        if self._over:
            with self._reporter.quiet():
                yield from self._sending([])

    def clear(self) -> None:
        """The consumer is gone: others have its jobs, and report for them."""
        for report in list(self.open.values()):
            report.over = True
        self.open.clear()
        self._over.clear()

    def _sending(self, fresh: list[AttemptReport]) -> Calls[None]:
        consumer = self._consumer
        while fresh or self._over:
            over = [self._over.popleft() for _ in range(min(OVER_MOST, len(self._over)))]
            said: list[JobReport] = []
            room = LINES_MOST
            for one in fresh[:REPORTS_MOST]:
                if room == 0:
                    break
                said.append(one.taken(room))
                room -= len(said[-1].lines)
            part, fresh = fresh[: len(said)], fresh[len(said) :]
            call = commands.report(consumer.keys, consumer.name, consumer.term, said, over)
            try:
                yield call
            except RegistrationLost:
                return  # who settles hears of it too
            except BaseException:
                for one in part:
                    one.fresh = True
                self._over.extendleft(reversed(over))
                raise
            for one, report in zip(part, said, strict=True):
                one.arrived(report)
            if room == 0 and part[-1].logged:  # it did not fit, whole
                fresh.insert(0, part[-1])
