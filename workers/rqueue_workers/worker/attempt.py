"""One job, from its stored value to its outcome: decoding, results, failures and their causes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic, time
from typing import Any

from orjson import dumps

from rqueue.errors import (
    BadArguments,
    ConfigError,
    Forged,
    NotEncodable,
    NotKept,
    SoftTimeLimit,
    Undecodable,
    UnknownTask,
    Unsigned,
)
from rqueue.logs import logger
from rqueue.model.causes import GAVE_UP
from rqueue.model.envelope import encode_result, unpack
from rqueue.model.job import Delivery, Header, parse_value
from rqueue.model.parents import read_results
from rqueue.model.signing import SIGNED_WITHIN_MS, Signer
from rqueue.protocol.commands.settle import Retried
from rqueue.protocol.policies.refusals import ELSEWHERE
from rqueue.tasks.arguments import InvalidArguments
from rqueue.tasks.context import JobContext
from rqueue.tasks.control import Cancelled, Control, Refuse, Reject, Retry, Snooze
from rqueue.tasks.middleware import Middleware, has
from rqueue.tasks.registry import registry
from rqueue.tasks.retry import error_name
from rqueue.text.numbers import many
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.worker.error_text import (
    Unreadable,
    about,
    clean,
    exc_info_of,
    message_of,
    reason_of,
    summary_of,
    text,
    traceback_of,
)
from rqueue_workers.worker.outcome import Ack, Done, Outcome, Unfinished
from rqueue_workers.worker.subscription import Subscription
from rqueue_workers.worker.task_plans import Plan

log = logger("rqueue.worker")

PARK_FIRST_S, PARK_MOST_S = 1.0, 60.0
PASS_S = 0.5
EARLY_MS = 1000
"""So much a worker's idea of Redis's clock may be wrong where it looks at a signed due time."""

OWN = ("rqueue.", "rqueue_workers.")
"""How the names of all modules begin that may call a task's function."""

NOTHING: Mapping[str, Any] = {}

_new = tuple.__new__


Decoded = tuple[bytes, Plan, list[Any], dict[str, Any], Mapping[str, Any]]
"""Head, plan, args, kwargs and options of a job."""


class Unfit(Exception):
    """A job that cannot be run here. `outcome` says what becomes of it; None = others are to have a
    look at it first."""

    def __init__(self, outcome: Unfinished | None) -> None:
        super().__init__()
        self.outcome = outcome


class Attempts:
    """What the executors share: plans by name, signatures, limits of attempts, the worker's name.

    What it says of a job's end is an `rqueue_workers.worker.outcome`. Where it needs to know of the
    queue it is given the subscription: attempts that are allowed, and the time by Redis's clock.
    """

    def __init__(
        self,
        spec: WorkerSpec,
        plans: dict[str, Plan],
        worker: str,
        signer: Signer | None,
        middleware: Sequence[Middleware] = (),
    ) -> None:
        self.spec = spec
        self.plans = plans
        self.worker = worker
        self.signer = signer
        self._passed: dict[bytes, float] = {}
        self.max_body = spec.settings.max_body
        self._on_retry = [one.on_retry for one in middleware if has(one, "on_retry")]
        self._on_dead = [one.on_dead for one in middleware if has(one, "on_dead")]

    def decoded(self, of: Subscription, id: bytes, value: bytes, acquired: int) -> Decoded | None:
        """A job as it can run; None where it cannot, and goes its way."""
        try:
            return self.decode(of, id, value, acquired, monotonic())
        except Unfit as unfit:
            of.unfit(id, value, unfit.outcome)
            return None

    def decode(
        self, of: Subscription, id: bytes, value: bytes, acquired: int, now: float
    ) -> Decoded:
        """Head, plan, args, kwargs and options of a job; raises Unfit with the outcome of one that
        cannot run: not decodable, not signed well, not due yet by its signature, or of a task that
        nobody here knows."""
        head, _, body = value.partition(b";")
        at_ms = of.ms(now)
        name = ""
        problem: Exception
        try:
            header, _ = parse_value(value)
            if self.signer is not None:
                verified = self.signer.verify(of.queue, id.decode(), body, header)
                now_ms = self.trusted_ms(at_ms)
                early = verified.not_before_ms(header.enqueued_ms) - now_ms
                if early > EARLY_MS:
                    raise Unfit(self._early(id, value, head, acquired, now, early, header))
                if b"|n" in head:
                    self.signer.verify_steps(of.queue, id.decode(), value)
                body = verified.json
            name, args, kwargs, opts = unpack(body)
            if header.results:
                args = [*read_results(header.waits, header.results), *args]
            plan = self.plans.get(name)
            if plan is None:
                raise Unfit(self._unknown(id, value, head, name, acquired, now, at_ms))
            if opts:
                plan = plan.for_job(opts, self.spec)
            return head, plan, args, kwargs, opts
        except (Unsigned, Forged) as error:
            kind, problem, said = "forged", error, error.reason
        except (Undecodable, ConfigError, UnicodeDecodeError) as error:
            kind, problem, said = "undecodable", error, str(error)
        cause = self._error(problem, kind, at_ms, attempt_of(value) + 1)
        cause["message"] = clean(said)
        log.error(
            "job %s: %s; it goes to the dead letters",
            text(id), said, extra=about(id, name, of.queue),
        )  # fmt: skip
        row = (id, value, head, name, acquired, now, now)
        raise Unfit(Unfinished(*row, "reject", kind, None, dumps(cause)))

    def trusted_ms(self, at_ms: int) -> int:
        """The time by which a signature is judged, where the queue says that it is `at_ms`: by this
        host's clock too, roughly, as that of the queue can be moved, for tests."""
        return min(at_ms, round(time() * 1000) + SIGNED_WITHIN_MS)

    def _early(
        self,
        id: bytes,
        value: bytes,
        head: bytes,
        acquired: int,
        now: float,
        early: int,
        header: Header,
    ) -> Unfinished:
        """A job whose signature says a later time than the queue does: it waits until then, not
        charged. Who signs may promote it (`Queue.promote`)."""
        log.warning("job %s came %.1f s before the time it is signed for", text(id), early / 1000)
        later = Retried(id, early, "head", False, b"", header.deliveries)
        return Unfinished(id, value, head, "", acquired, now, now, "snooze", "", later)

    def _unknown(
        self, id: bytes, value: bytes, head: bytes, name: str, acquired: int, now: float, at_ms: int
    ) -> Unfinished | None:
        """A job of a task that nobody here knows is passed on; one that comes back at once has been
        everywhere: it is parked, for longer and longer."""
        if now - self._passed.pop(id, 0.0) > PASS_S:
            if len(self._passed) > 1000:
                self._passed.clear()
            self._passed[id] = now
            return None
        deliveries = parse_value(value)[0].deliveries  # two for each time: passed on, and parked
        delay = min(PARK_MOST_S, PARK_FIRST_S * 2 ** min(deliveries // 2, 10))
        try:
            registry.get(name)
            said = f"no task '{name}' is registered here"
        except UnknownTask as error:
            said = str(error)
        reason = {
            "kind": "unknown_task",
            "type": "UnknownTask",
            "message": said,
            "at": at_ms,
            "worker": self.worker,
        }
        log.warning(
            "job %s: %s; it waits for a worker that knows it, and is asked for again in %g s",
            text(id),
            said,
            delay,
        )
        parked = Retried(id, round(delay * 1000), "park", False, dumps(reason))
        row = (id, value, head, name, acquired, now, now)
        return Unfinished(*row, "park", "UnknownTask", parked)

    # -- ends --------------------------------------------------------------------------------------

    def ended(
        self, row: Ack, plan: Plan, result: Any, error: BaseException | None, of: Subscription
    ) -> Outcome:
        """The outcome of a job that returned or raised."""
        if error is not None:
            return self.failed(row, plan, error, of)
        return row if result is None else self.returned(row, plan, result, of)

    def returned(self, row: Ack, plan: Plan, result: Any, of: Subscription) -> Done | Unfinished:
        """The outcome of a job that returned something; the hot loop does the same by itself."""
        try:
            payload = encode_result(result, plan.name, self.max_body)
        except BaseException as raised:  # its classes are the user's code as well
            return self.unkept(row, plan, raised, of)
        return _new(Done, (*row, plan.keep_ms, payload))

    def unkept(self, row: Ack, plan: Plan, raised: BaseException, of: Subscription) -> Unfinished:
        """The outcome of a job that returned what cannot be kept. raised: by the try to encode
        it."""
        if isinstance(raised, NotEncodable):
            error = raised
        else:
            error = NotEncodable("", plan.name, f"to read it raised {type(raised).__name__}")
        cause = self._error(error, "exception", of.ms(row[6]), attempt_of(row[1]) + 1)
        cause["why"] = GAVE_UP
        log.error("job %s: %s; it goes to the dead letters", text(row[0]), error)
        self._tell(self._on_dead, row, of, error)
        return Unfinished(*row, "reject", error_name(type(error)), None, dumps(cause))

    def failed(self, row: Ack, plan: Plan, error: BaseException, of: Subscription) -> Unfinished:
        """The outcome of a job that raised."""
        if of.steps.behind:
            of.steps.catch_up(text(row[0]), header_of(row[1]).deliveries)
        try:
            return self._failure(row, plan, error, of)
        except BaseException as second:
            # what it raised is the user's code as well: to look at it may raise anything
            return self._failure(row, plan, Unreadable(error, second), of)

    def lost(self, id: bytes, plan: Plan, error: BaseException) -> None:
        """A job that was acked before it began has failed: it is not tried again (Q-24)."""
        said = clean(f"{type(error).__name__}: {message_of(error)}")
        log.error(
            "job %s of %s failed, and was acked before it began: %s",
            text(id), plan.name, said, exc_info=exc_info_of(error), extra=about(id, plan.name),
        )  # fmt: skip

    def _failure(self, row: Ack, plan: Plan, error: BaseException, of: Subscription) -> Unfinished:
        id, value, at_ms = row[0], row[1], of.ms(row[6])
        header = header_of(value)
        attempt = header.attempts + 1
        if isinstance(error, Cancelled) and id in of.cancelled:
            log.info("job %s of %s was cancelled, and interrupted", text(id), plan.name)
            # the queue has ended it, and refuses whatever is said of it
            over = Retried(id, 0, "old", False, b"", header.deliveries)
            return Unfinished(*row, "snooze", "", over)
        if isinstance(error, Snooze):
            delay = round(error.seconds * 1000)
            place = "head" if delay else "old"
            later = Retried(id, delay, place, False, b"", header.deliveries)
            if error.reason:
                log.info("job %s of %s is %s", text(id), plan.name, error)
            return Unfinished(*row, "snooze", reason_of(error), later)
        if isinstance(error, Refuse):
            log.info("job %s of %s is refused: %s", text(id), plan.name, error.reason)
            others = Retried(id, 0, ELSEWHERE, False, b"", header.deliveries)
            return Unfinished(*row, "refuse", reason_of(error), others)
        if isinstance(error, Reject):
            cause = self._error(error, "rejected", at_ms, attempt)
            log.error(
                "job %s of %s rejected itself: %s",
                text(id), plan.name, error.reason, extra=about(id, plan.name, of.queue),
            )  # fmt: skip
            self._tell(self._on_dead, row, of, error)
            return Unfinished(*row, "reject", "Reject", None, dumps(cause))
        kind = "time_limit" if isinstance(error, SoftTimeLimit) else "exception"
        misfit = _misfit(plan, value, error)
        error = misfit or error
        name = "Retry" if isinstance(error, Retry) else error_name(type(error))
        cause = self._error(error, kind, at_ms, attempt)
        cause["started"] = of.ms(row[5])
        most = header.max_deliveries or plan.most or of.most
        policy = plan.policy
        exhausted = most and attempt >= most
        final = misfit is not None or isinstance(error, NotKept)
        if final or exhausted or not (isinstance(error, Retry) or policy.retries(error)):
            if not exhausted:
                cause["why"] = GAVE_UP
            log.error(
                "job %s of %s failed for good after %s: %s",
                text(id), plan.name, many(attempt, "attempt"), summary_of(name, cause),
                exc_info=exc_info_of(error), extra=about(id, plan.name, of.queue),
            )  # fmt: skip
            self._tell(self._on_dead, row, of, error)
            return Unfinished(*row, "reject", name, None, dumps(cause))
        if isinstance(error, Retry) and error.after is not None:
            seconds = error.after
        else:
            seconds = policy.delay_after(attempt)
        delay = round(seconds * 1000)
        place = "tail" if policy.retry_at == "tail" else "head" if delay else "old"
        log.warning(
            "job %s of %s failed, attempt %d; again in %g s: %s",
            text(id), plan.name, attempt, delay / 1000, summary_of(name, cause),
            exc_info=exc_info_of(error), extra=about(id, plan.name, of.queue),
        )  # fmt: skip
        self._tell(self._on_retry, row, of, error, delay / 1000)
        retried = Retried(id, delay, place, True, dumps(cause), header.deliveries)
        return Unfinished(*row, "retry", name, retried)

    def _tell(
        self,
        hooks: Sequence[Callable[..., None]],
        row: Ack,
        of: Subscription,
        *said: object,
    ) -> None:
        """Tell middleware what becomes of a job. What that raises changes nothing."""
        if not hooks:
            return
        id, value, _, task, acquired, _, _ = row
        job = Delivery(id, value)
        opts = unpack(job.body)[3]
        context = JobContext(job, task, of.queue, opts, acquired, self.worker)
        for hook in hooks:
            try:
                hook(context, *said)
            except BaseException:  # of the application, which decides nothing here
                log.exception("%s failed for job %s", hook, text(id), extra=about(id, task))

    def _error(self, error: BaseException, kind: str, at_ms: int, attempt: int) -> dict[str, Any]:
        """An error as it is kept and shown."""
        if isinstance(error, Control):
            name, said, trace = type(error).__name__, error.reason, ""
        else:
            name, said, trace = error_name(type(error)), message_of(error), ""
            if kind in ("exception", "time_limit"):
                trace = traceback_of(error)
        return {
            "kind": kind,
            "type": name,
            "message": clean(said),
            "traceback": clean(trace),
            "at": at_ms,
            "attempt": attempt,
            "worker": self.worker,
        }


def _misfit(plan: Plan, value: bytes, error: BaseException) -> BadArguments | None:
    """The error of a call that the task's function does not take, however often it is tried. None
    for a TypeError that the function itself raised: its frames are in the traceback."""
    if isinstance(error, InvalidArguments):
        return BadArguments(error.task, error.problem, error.signature)
    if type(error) is not TypeError or plan.check is None:
        return None
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or not last.tb_frame.f_globals["__name__"].startswith(OWN):
        return None
    header, body = parse_value(value)
    _, args, kwargs, _ = unpack(body)
    given = read_results(header.waits, header.results) if header.results else []
    try:
        plan.check((*given, *args), kwargs)
    except BadArguments as misfit:
        return misfit
    return None


def header_of(value: bytes) -> Header:
    """The header of a job that runs, or ran."""
    return parse_value(value)[0]


def attempt_of(value: bytes) -> int:
    """Charged attempts so far; 0 where the header cannot be read."""
    try:
        return parse_value(value)[0].attempts
    except Undecodable:
        return 0
