# Generated from rqueue/client/_async/queue_settings.py (`make generate`): do not edit.
"""A queue's own options, as its clients set them."""

from __future__ import annotations

from datetime import timedelta

from rqueue.client._sync.alternate_links import configure_with_targets
from rqueue.client._sync.queue_alerts import QueueAlerts
from rqueue.protocol import commands
from rqueue.protocol.queue_options import DeleteIf, Expired, Overflow, SortOrder, configuration

__all__ = ["QueueSettings"]


class QueueSettings(QueueAlerts):
    """What is configured of a queue for all its clients and workers."""

    def configure(
        self,
        *,
        priorities: int | None = None,
        max_deliveries: int | None = None,
        max_crashes: int | None = None,
        keep: float | str | timedelta | None = None,
        history_rows_max: int | None = None,
        ttl: float | str | timedelta | None = None,
        ttl_min: float | str | timedelta | None = None,
        ttl_max: float | str | timedelta | None = None,
        expired: Expired | None = None,
        max_jobs: int | None = None,
        max_bytes: int | None = None,
        overflow: Overflow | None = None,
        resume: int | None = None,
        count_held: bool | None = None,
        kind: str | None = None,
        dead_to: str | None = None,
        expired_to: str | None = None,
        live_consumers: int | None = None,
        strict: bool | None = None,
        max_consumers: int | None = None,
        delete_if: DeleteIf | None = None,
        delete_after: float | str | timedelta | None = None,
        ring: int | None = None,
        ring_bytes: int | None = None,
        hold: bool | None = None,
        lifo: bool | None = None,
        sort: SortOrder | None = None,
        sticky: int | None = None,
        rebalance: bool | None = None,
        dead_letters: bool | None = None,
        alert_depth: int | None = None,
    ) -> None:
        """Set the queue's own options, for all its clients and workers. Raises ConfigError.

        priorities: how many levels (1 to 10, the default; Q-11), fixed once jobs are there.
        max_deliveries: attempts of a job that says nothing else (default 10; 0: no limit).
        max_crashes: how many of them may cost a worker its process (default 3; 0: no limit). keep:
        how long records and results of ended jobs last (default 10 minutes). history_rows_max: rows
        that the history keeps (default 200,000). ttl: the time to live of jobs that say nothing of
        it; ttl_min, ttl_max: bounds of all times to live, of which ttl_max also holds for jobs that
        would live for ever (Q-62); 0 takes one back. They hold for what is enqueued from now on.
        expired: whether expired jobs "end" (the default) or become "dead" letters. kind: "plain",
        the default, or names of policies: "groups", one job in flight for each group (Q-65),
        "last_value", of the jobs of a key only the latest waits (Q-15), "sorted", see sort; one is
        given up only while the queue has no jobs. dead_to, expired_to: another queue, which has to
        be there, to which dead letters or expired jobs go from now on (Q-66, A-22, A-23); "" takes
        that back. live_consumers: so many take jobs, the others stand by and take over in the order
        of their priorities and registrations (Q-68, A-28). strict: one consumer, a second one is
        refused (Q-18). max_consumers: how many the queue takes (A-36). ring: so many jobs are ready
        at the most; one more displaces the oldest of the lowest level (Q-67); ring_bytes: that many
        bytes of envelopes. max_jobs, max_bytes: how many jobs, and bytes of envelopes, may wait,
        ready or scheduled; what does not fit is refused with QueueFull (Q-67). overflow:
        at once ("reject", the default), or after its producer waited for room ("block"), where the
        queue has to fall to `resume` percent of the limit (default 80). count_held: held jobs count
        too. 0 and False are no limit. delete_if: "empty" or "always": the queue goes when its last
        consumer has left, delete_after later (Q-60, A-37), unless a job or a consumer comes;
        "never" takes that back. hold: whether jobs that ask for it (`Options.hold`) are held until
        they are due; False: they are delivered at once (Q-63). lifo: whether all jobs come to the
        front: last in, first out (A-17). sort: which sort key goes first (Q-14), the least
        ("ascending", the default) or the greatest ("descending"); it cannot change while the queue
        has jobs, nor may sticky: groups fall into so many buckets, and are their consumers' until
        those leave (Q-64, A-26), rebalance: or until one more comes. dead_letters: whether what
        fails for good, or cannot be read, becomes a dead letter (the default); False: it ends at
        once (C-07, C-08). alert_depth: an arrival that brings the queue to so many jobs makes an
        alert, see `alerts`; 0: none (Q-72).
        """
        options = configuration(
            priorities, max_deliveries, max_crashes, keep, history_rows_max, ttl, ttl_min,
            ttl_max, expired, kind, dead_to, expired_to, live_consumers, strict, max_consumers,
            delete_if, delete_after, ring,
            max_jobs=max_jobs, overflow=overflow, resume=resume, count_held=count_held, hold=hold,
            lifo=lifo, sort=sort, sticky=sticky, rebalance=rebalance, dead_letters=dead_letters,
            alert_depth=alert_depth, max_bytes=max_bytes, ring_bytes=ring_bytes,
        )  # fmt: skip
        if options.keys() & {"dead_to", "expired_to"}:
            configure_with_targets(self, options)
        else:
            self._run(commands.configure(self.keys, options))
