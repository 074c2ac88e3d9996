"""The supervisor of a pool: it runs no user code, forks the workers, and keeps their promises.

It renews their leases (also while a job holds the interpreter for an hour), reclaims at once what
a dead one held, enforces hard limits, replaces the dead, and lets the pool leave in good order.
One thread, one poll: a signal, an answer of Redis, or the next thing that is due.
"""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Sequence
from typing import Any

import rqueue
from rqueue.errors import ConfigError, ServerError
from rqueue.logs import logger
from rqueue.protocol.advice import describe
from rqueue.settings import redact
from rqueue.transport.lease_renewer import renewal_interval
from rqueue.transport.resp import readable
from rqueue_workers.exit_codes import Exit
from rqueue_workers.pool import log_setup, preflight
from rqueue_workers.pool.crash_log import CrashLog
from rqueue_workers.pool.exit_cause import ExitCause, OomKills
from rqueue_workers.pool.host import Pidfile, tell_systemd
from rqueue_workers.pool.lease_keeper import KillLooks, Reclaim, Stopped, ran
from rqueue_workers.pool.pending_lists import PendingLists, open_lists
from rqueue_workers.pool.processes import Body, WorkerProcess, WorkerProcesses
from rqueue_workers.pool.queue_scout import NoQueues, QueueFinder
from rqueue_workers.pool.restart_policy import RestartPolicy
from rqueue_workers.pool.rolling_restart import RollingRestart
from rqueue_workers.pool.served_queues import ServedQueues, with_shards
from rqueue_workers.pool.signals import Inbox, Lifeline
from rqueue_workers.pool.status_report import report, workers
from rqueue_workers.pool.verdict import OwnFaults, Verdict, judge
from rqueue_workers.spec import PoolSpec
from rqueue_workers.status_page import STOP, WAITING

log = logger("rqueue.pool")

LOOK, CLOSE_LOOK = 0.5, 0.1
"""Seconds between looks at the workers' pages, and while they run jobs: how late a hard limit, or
that a job runs for long, may be noticed."""

FAREWELL = 3.0
"""Seconds that Redis gets at the end to take back what the dead held; then their leases end."""

HOPELESS = 5
"""Deaths before any worker ever got to work, or of one slot in a row by faults of our own, soon
after it did, with which no job was charged, after which the pool gives up."""

WORKING, DRAINING, STOPPING = range(3)


class Supervisor:
    """One pool. `body` is what its workers run; tests put another one in."""

    def __init__(self, spec: PoolSpec, body: Body | None = None) -> None:
        self._spec = spec
        self._body = body
        self._wanted = spec.processes
        self._stage = WORKING
        self._code = Exit.OK
        self._proven = False
        self._announced = False
        self._deaths = 0
        self._rolling: RollingRestart | None = None
        self._roll_again = False
        self._end_by = 0.0
        self._renew_at = 0.0
        self._finder: QueueFinder
        self._crash_log: CrashLog
        self._respawn = RestartPolicy(spec.respawn_delays)
        self._oom_kills = OomKills()
        self._own_faults = OwnFaults()
        self._inbox: Inbox
        self._processes: WorkerProcesses
        self._pending: PendingLists

    def run(self) -> int:
        """Run until a signal, or a fault, ends the pool; returns its exit code."""
        log_setup.configure(self._spec)
        try:
            with Pidfile(self._spec.pidfile):
                self._inbox = Inbox()
                self._inbox.open()
                try:
                    return self._run()
                finally:
                    self._inbox.close()
        except (NoQueues, ConfigError) as error:
            log.error("%s", error)
            return Exit.APP
        except ServerError as error:
            log.error("%s", describe(error))
            return Exit.REDIS
        except Exception:
            log.exception("the supervisor failed; its workers drain and leave")
            return Exit.INTERNAL

    # -- the loop ----------------------------------------------------------------------------------

    def _run(self) -> int:
        settings = self._spec.worker.settings
        if settings.url is None:
            raise ConfigError("url", "set RQUEUE_URL, or pass --url")
        lifeline = Lifeline()
        self._finder = QueueFinder(self._spec.worker, self._inbox, lifeline)
        if (found := self._finder.first()) is None:
            return Exit.OK  # a signal came while the application was imported
        if not preflight.pass_through(settings, found.queues, self._spec.patience, self._inbox):
            return Exit.OK  # a signal came while Redis was not there yet
        self._pending = open_lists(worker := with_shards(found), self._found_again)
        self._processes = WorkerProcesses(worker, self._body, self._inbox, lifeline)
        self._served = ServedQueues(worker, self._pending, self._processes, self._lease_ended)
        self._crash_log = CrashLog(self._served.names)
        log.info(
            "pool %s: rqueue %s, %s for %s, Redis at %s",
            self._processes.name,
            rqueue.__version__,
            workers(self._wanted),
            ", ".join(worker.queues),
            redact(settings.url),
        )
        interval = renewal_interval(settings.lease_ms)
        heard: list[Any] = []
        while True:
            now = time.monotonic()
            for number in self._inbox.take():
                self._hear(number, now)
            self._notice_ready(now)  # also of one that died since
            for process, exit_cause in self._processes.reap():
                self._exited(process, exit_cause, now)
            if self._processes.any_resumed():
                self._renew_at = now  # the renewals meanwhile left it out
            self._enforce(now)
            self._note_running(now)
            self._fill(now)
            roll = self._served.look()
            if now >= self._renew_at:
                self._renew_at = now + interval
                # a restart for new shards that was given up begins again
                lacking = self._processes.any_lacks(len(self._served.names) - 1)
                roll = roll or (self._rolling is None and lacking)
                for renewal in self._served.renewals:
                    self._pending.add(renewal, first=True)
                long = list(self._processes.running(now, interval))
                for index, keys in enumerate(self._served.keys if long else ()):
                    self._pending.add(KillLooks(index, keys, long))
                self._served.advance()
            if roll and self._stage == WORKING:
                self._roll()
            self._pending.step(now, heard)
            if (found := self._finder.answer(heard)) is not None:
                self._served.add(found)
                self._roll()
            if self._over(now):
                break
            heard = self._sleep()
        self._pending.close()
        lifeline.close()
        log.info("pool %s: ended with exit code %d", self._processes.name, self._code)
        return self._code

    def _sleep(self) -> list[Any]:
        watched = [self._inbox, *self._pending.sockets, *self._finder.waited_for]
        now = time.monotonic()
        busy = any(process.page.busy for process in self._processes)
        moments = [self._renew_at, now + (CLOSE_LOOK if busy else LOOK)]
        for moment in (
            self._pending.wake_at,
            self._processes.next_limit(now),
            self._end_by or None,
        ):
            if moment is not None:
                moments.append(moment)
        if self._stage == WORKING:
            moments += [
                self._respawn.at(index) for index in self._processes.free_indexes(self._wanted)
            ]
        # one that starts is looked at often, the less so the longer it takes
        moments += [
            now + max(0.01, (now - m.forked_at) / 8) for m in self._processes if not m.ready
        ]
        return readable(watched, min(moments) - now)

    def _over(self, now: float) -> bool:
        if self._stage == WORKING or len(self._processes):
            return False
        if self._pending.idle:
            return True
        if not self._end_by:
            self._end_by = now + FAREWELL
        if now < self._end_by:
            return False
        log.warning("Redis is gone: what dead workers held goes back when their leases end")
        return True

    # -- signals -----------------------------------------------------------------------------------

    def _hear(self, number: signal.Signals, now: float) -> None:
        if number in (signal.SIGTERM, signal.SIGINT):
            self._leave(number.name, now)
        elif number == signal.SIGQUIT:
            self._stage = max(self._stage, DRAINING)
            self._leave(number.name, now)
        elif number == signal.SIGHUP and self._stage == WORKING:
            log.info("SIGHUP: the workers are renewed, one after another")
            if not self._finder.ask_again(self._pending.close):
                self._roll()
        elif number == signal.SIGUSR1:
            report(self._processes, self._served.spec, now, self._pending.gone)
        elif number == signal.SIGTTIN and self._stage == WORKING:
            self._wanted += 1
            log.info("SIGTTIN: %s from now on", workers(self._wanted))
        elif number == signal.SIGTTOU and self._stage == WORKING and self._wanted > 1:
            self._wanted -= 1
            log.info("SIGTTOU: %s from now on", workers(self._wanted))
            for process in [m for m in self._processes if m.stays and m.index >= self._wanted]:
                self._retire(process)
        elif number == signal.SIGTSTP:
            log.warning("SIGTSTP: a suspended pool would lose its leases; stop it instead")

    def _leave(self, why: str, now: float) -> None:
        """Drain; if that goes on already, stop now; if that does too, kill."""
        if self._stage == WORKING:
            self._drain(why)
        elif self._stage == DRAINING:
            self._stage = STOPPING
            log.info("%s: stopping now, running jobs are released", why)
            for process in self._processes:
                process.ask(STOP, now + self._spec.grace)
        else:
            log.warning("%s: killing what is left", why)
            for process in self._processes:
                process.kill()

    def _drain(self, why: str) -> None:
        self._stage = DRAINING
        self._finder.cancel()
        tell_systemd("STOPPING=1")
        for process in self._processes:
            self._retire(process)
        log.info("%s: draining, at most %g s", why, self._spec.worker.drain)

    def _retire(self, process: WorkerProcess) -> None:
        self._processes.drain(process, time.monotonic(), self._spec.worker.drain, self._spec.grace)

    # -- workers come ------------------------------------------------------------------------------

    def _fill(self, now: float) -> None:
        if self._stage != WORKING:
            return
        # a successor takes nothing before what a dead worker held is back in its place
        waits = self._pending.holds(Reclaim)
        for index in () if waits else self._processes.free_indexes(self._wanted):
            if now >= self._respawn.at(index):
                self._start(index)
        if self._rolling is not None and self._rolling.step():
            self._rolling = None
            if self._roll_again:
                self._roll_again = False
                self._roll()

    def _start(self, index: int) -> WorkerProcess:
        return self._processes.fork(index, self._pending.close)

    def _roll(self) -> None:
        if self._rolling is not None:
            self._roll_again = True
        else:
            self._rolling = RollingRestart(self._processes, self._start, self._retire)

    def _notice_ready(self, now: float) -> None:
        for process in self._processes.newly_ready():
            self._proven = True
            log.info(
                "worker %s (process %d) is ready after %.2f s",
                process.base,
                process.pid,
                now - process.forked_at,
            )
            self._crash_log.say(logging.WARNING, process.page.words)
        if (
            self._proven
            and not self._announced
            and all(process.ready for process in self._processes)
        ):
            self._announced = True
            tell_systemd(f"READY=1\nSTATUS={workers(self._wanted)}")

    # -- workers go --------------------------------------------------------------------------------

    def _enforce(self, now: float) -> None:
        for process in self._processes.to_kill(now):
            self._crash_log.killing(process)
            process.kill()
        for process in self._processes:
            process.knock(now)
            if process.kill_at and now >= process.kill_at and not process.killed:
                if process.page.phase == WAITING and not process.patience:
                    # it has done its jobs, and only has to tell: as long as the lease may hold
                    lease_s = self._spec.worker.settings.lease_ms / 1000
                    process.patience = lease_s + self._spec.grace
                    process.kill_at = now + process.patience
                    continue
                log.warning("worker %s did not leave in time: killing it", process.base)
                process.kill()

    def _note_running(self, now: float) -> None:
        """What runs for long is noted in Redis, where it is found when this host dies."""
        for notes in self._served.notes:
            if notes.due(now):
                self._pending.add(notes)

    def _exited(self, process: WorkerProcess, exit_cause: ExitCause, now: float) -> None:
        """Give back what it held, say why it died, and see to its successor."""
        verdict = judge(process, exit_cause, self._oom_kills, self._own_faults)
        if verdict.no_start:
            self._could_not_start(process, exit_cause)
        for index, keys in enumerate(self._served.keys):
            if not process.serves(index):
                continue
            charged = [job for job in verdict.charged if job.queue == index]
            clock = self._pending.clock(keys.queue)
            cause = verdict.cause(charged, clock.ms(time.monotonic()))
            reports = [ran(job, clock) for job in charged]
            self._pending.add(Stopped(index, keys, process))  # first: then its consumer is gone
            self._pending.add(Reclaim(keys, process.consumer(index), cause, reports, clock))
        if self._stage != WORKING and verdict.unfinished and self._code == Exit.OK:
            self._code = Exit.UNFINISHED
        if verdict.crashed:
            self._crash_log.died(verdict, now)
        elif verdict.ordered:
            log.info("worker %s (process %d) left", process.base, process.pid)
        self._make_room(verdict, now)
        process.page.close()

    def _make_room(self, verdict: Verdict, now: float) -> None:
        """See to a successor: at once where it left in order, or a job ended it (each such job is
        held back by itself); else more slowly each time."""
        process = verdict.process
        if self._stage != WORKING:
            return
        if (
            not process.ready
            and self._rolling is not None
            and self._rolling.failed(process, verdict.exit_cause)
        ):
            self._rolling = None
            self._roll_again = False
            return
        if verdict.ordered or process.killed or verdict.by_job:
            if verdict.by_job and verdict.ours:
                self._respawn.explained()
            self._respawn.left(process.index)
            return
        at_work = now - process.ready_at if process.ready else 0.0
        delay = self._respawn.died(process.index, now, at_work)
        if delay:
            log.info("another worker for slot %d in %g s", process.index, delay)
        self._deaths += 1
        if verdict.ours and self._respawn.failed(process.index, at_work) >= HOPELESS:
            self._code = Exit.INTERNAL
            log.error("workers fail again and again by a fault of rqueue's own: giving up")
            self._drain("rqueue fails")
        elif not self._proven and self._deaths >= HOPELESS:
            self._code = Exit.APP
            log.error("no worker got to work, the last one %s: giving up", verdict.exit_cause)
            self._drain("no worker starts")

    def _could_not_start(self, process: WorkerProcess, exit_cause: ExitCause) -> None:
        said = process.page.words or f"worker {process.base} cannot start: it {exit_cause}"
        if self._stage != WORKING:
            return
        self._crash_log.say(logging.ERROR, said)
        if not self._proven:
            self._code = Exit(exit_cause.code or 0)
            self._drain("the workers cannot start")

    def _found_again(self, queue: str) -> None:
        """Workers that wait on a connection to a host that has vanished hear nothing of that."""
        if queue not in self._served.names:
            return  # one that jobs are sent on to
        for process in self._processes:
            process.doubt(self._served.names.index(queue))

    def _lease_ended(self, queue: str, consumers: Sequence[str]) -> None:
        """Another pool took us for dead: Redis was gone, or the host asleep, for longer than a
        lease. A worker that has no jobs of that queue waits on a list that nobody writes to any
        more: it is to ask, learns it, and registers there again."""
        index = self._served.names.index(queue)
        for process in self._processes:
            if not process.stays or not process.serves(index):
                continue
            if process.consumer(index) in consumers:
                log.warning(
                    "worker %s is no longer registered in queue %s although it lives (its lease"
                    " ended, or Redis lost its data): it joins again",
                    process.base,
                    queue,
                )
                process.doubt(index)
