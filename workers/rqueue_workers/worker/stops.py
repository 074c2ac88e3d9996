"""Jobs of one consumer that were cancelled while they ran, and whose code is to be stopped."""

from __future__ import annotations

from collections import deque
from typing import Literal

from rqueue.protocol import commands
from rqueue.protocol.course import Calls
from rqueue.protocol.keys import QueueKeys

Stage = Literal["delivered", "ended"]


class Stops:
    """How far that is, and what of it is not reported yet. An id is that of one delivery here: a
    job that was cancelled is not delivered again."""

    __slots__ = ("late", "news", "wanted")

    def __init__(self) -> None:
        self.wanted: dict[bytes, str] = {}
        """What is to become of their code: "stop", "kill"; "delivered" when it was interrupted."""
        self.late: list[tuple[bytes, str]] = []
        """Of which one heard before the reply was read that may bring them, and how."""
        self.news: deque[tuple[bytes, Stage]] = deque()
        """What is not reported yet; to be looked at."""

    def raises(self, id: bytes, force: str, before: str = "") -> bool:
        """Whether more is to become of its code than was wanted, or done, until now; noted then.
        before: what that was, where it is not noted here."""
        known = self.wanted.get(id, before)
        if not force or known == "kill" or (known and force == "stop"):
            return False
        self.wanted[id] = force
        return True

    def interrupted(self, id: bytes) -> None:
        """Its code has been interrupted. From any thread."""
        if id in self.wanted:
            self.wanted[id] = "delivered"
        self.news.append((id, "delivered"))

    def ended(self, id: bytes) -> None:
        """Its code runs no more. From any thread."""
        self.news.append((id, "ended"))

    def refused(self, id: bytes) -> None:
        """The queue does not take its outcome, which proves that it has ended."""
        if self.wanted.pop(id, ""):
            self.ended(id)

    def telling(self, keys: QueueKeys, consumer: str) -> Calls[None]:
        """Report it to Redis; what fails is reported the next time."""
        while self.news:
            id_, stage = self.news[0]
            yield commands.note_stop(keys, consumer, stage, [id_.decode()])
            self.news.popleft()

    def clear(self) -> None:
        """The consumer is gone, and with it all that it had."""
        self.wanted.clear()
        self.late.clear()
        self.news.clear()
