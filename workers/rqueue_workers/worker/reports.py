"""What the jobs of one consumer report while they run, until it is sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from rqueue.errors import LifecycleError, RegistrationLost
from rqueue.model.progress import Report, packed
from rqueue.protocol import commands
from rqueue.protocol.commands.reports import OVER_MOST, REPORTS_MOST
from rqueue.protocol.consumer_state import ConsumerState
from rqueue_workers.worker.reporter import Reporter


class AttemptReport:
    """Of one attempt: the last that its code said, in place of what it said before."""

    __slots__ = ("_of", "delivery", "fresh", "id", "over", "said", "sent")

    def __init__(self, of: Reports, id: str, delivery: int) -> None:
        self._of = of
        self.id = id
        self.delivery = delivery
        self.said: Report = (0, None, "")
        self.fresh = False
        """Whether that is not sent yet."""
        self.sent = False
        """Whether Redis has something of it."""
        self.over = False

    def progress(self, report: Report) -> None:
        """This is how far it is. From any thread. Raises LifecycleError in a process that the job
        forked."""
        if self.over:
            return
        self.said = report
        if not self.fresh:
            self.fresh = True  # first: who sends it meanwhile takes it away
            try:
                self._of.tell()
            except LifecycleError:
                self.fresh = False
                raise


class Reports:
    """True where a job that is not settled has reported. From any thread, except where a method
    says otherwise."""

    def __init__(self, consumer: ConsumerState, reporter: Reporter) -> None:
        self._consumer = consumer
        self._reporter = reporter
        self._open: dict[bytes, AttemptReport] = {}
        self._over: deque[str] = deque()
        """Jobs of which an attempt has ended that had reported."""

    def __bool__(self) -> bool:
        return bool(self._open)

    def of(self, id: str, delivery: int) -> AttemptReport:
        """The report of a job that runs; of one that is not held any more it is over."""
        key = id.encode()
        report = self._open.get(key)
        if report is None or report.delivery != delivery:
            report = AttemptReport(self, id, delivery)
            if key in self._consumer.unsettled:
                self._open[key] = report
            else:
                report.over = True
        return report

    def tell(self) -> None:
        """There is something to be sent."""
        self._reporter.tell(self)

    def send(self, run: Callable[..., Any]) -> None:
        """Send what is new. Raises the tree of `rqueue.errors`."""
        with self._reporter.sending:
            held = self._consumer.unsettled
            fresh = [one for key, one in list(self._open.items()) if one.fresh and key in held]
            self._send(run, [one for one in fresh if not one.over])

    def ending(self, ended: Iterable[bytes], failed: Iterable[bytes], run: Any) -> None:
        """These attempts are about to be settled: nothing more is sent of them, but how far those
        came that failed. Raises the tree of `rqueue.errors`."""
        for id_ in ended:
            if id_ in self._open:
                self._open[id_].over = True
        with self._reporter.sending:  # what was being sent has arrived
            self._send(run, [one for id_ in failed if (one := self._open.get(id_)) and one.fresh])

    def settled(self, ids: Iterable[bytes]) -> None:
        """These attempts are settled, or their jobs were cancelled."""
        news = False
        for id_ in ids:
            report = self._open.pop(id_, None)
            if report is not None:
                report.over = True
                if report.sent:
                    news = True
                    self._over.append(report.id)
        if news:
            self._reporter.tell(self)

    def finish(self, run: Callable[..., Any]) -> None:
        """The consumer is about to leave: what has ended is said now. Raises the tree of
        `rqueue.errors`."""
        if self._over:
            self.send(run)

    def clear(self) -> None:
        """The consumer is gone: others have its jobs, and report for them."""
        for report in list(self._open.values()):
            report.over = True
        self._open.clear()
        self._over.clear()

    def _send(self, run: Callable[..., Any], fresh: list[AttemptReport]) -> None:
        consumer = self._consumer
        queue = consumer.keys.queue
        while fresh or self._over:
            part, fresh = fresh[:REPORTS_MOST], fresh[REPORTS_MOST:]
            over = [self._over.popleft() for _ in range(min(OVER_MOST, len(self._over)))]
            for report in part:
                report.fresh = False  # first: what is said from here on is new
            said = [commands.JobReport(one.id, one.delivery, packed(one.said)) for one in part]
            call = commands.report(consumer.keys, consumer.name, consumer.term, said, over)
            try:
                run(call, queue=queue, consumer=consumer.name)
            except RegistrationLost:
                return  # who settles hears of it too
            except BaseException:
                for report in part:
                    report.fresh = True
                self._over.extendleft(reversed(over))
                raise
            for report in part:
                report.sent = True
