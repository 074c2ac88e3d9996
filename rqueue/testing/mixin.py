"""The harness for test cases of unittest, and so of Django."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import datetime
from typing import Any, ClassVar

from rqueue.testing.harness import Harness, in_memory

__all__ = ["RqueueTestMixin"]


class RqueueTestMixin:
    """Before TestCase among the bases of a test case: each of its tests has queues of its own in
    memory, `self.rqueue` (a `Harness`). rqueue_inline: jobs run where they are enqueued. rqueue_at:
    the time at which each test begins, an aware datetime; None: now.

    In Django's TestCase nothing is committed. What waits for a commit is enqueued where the test
    captures it: `with self.captureOnCommitCallbacks(execute=True): ...`.
    """

    rqueue_inline: ClassVar[bool] = False
    rqueue_at: ClassVar[datetime | None] = None
    rqueue: Harness

    def setUp(self) -> None:
        """Begin with empty queues."""
        case: Any = self
        with ExitStack() as stack:
            begun = in_memory(inline=self.rqueue_inline, at=self.rqueue_at)
            self.rqueue = stack.enter_context(begun)
            case.addCleanup(stack.pop_all().close)
        super().setUp()  # type: ignore[misc]  # of TestCase
