"""The window that a consumer sends to its queue: its own, or what its credit manager computes."""

from __future__ import annotations

from rqueue.errors import ConfigError
from rqueue.protocol.commands.settle import Window
from rqueue.protocol.credit import Credit

NO_CREDIT = Window(0, 0)


class CreditWindow:
    """The part of a `ConsumerState` that knows how much may be held."""

    __slots__ = ("credit", "state", "unsettled", "window")

    credit: Credit | None
    window: Window
    state: str
    unsettled: dict[bytes, bytes]

    @property
    def held_bytes(self) -> int:
        """Bytes of the stored values of the jobs that it holds."""
        return sum(map(len, self.unsettled.values()))

    def next_window(self) -> Window:
        """The window to send now."""
        if self.credit is not None:
            self.window = self.credit.window(len(self.unsettled), self.held_bytes)
        return self.window

    def idle_window(self) -> Window | None:
        """After a pull that came back short: the smaller window to wait with, if so."""
        if self.credit is None or self.state != "interested":
            return None
        small = self.credit.idle(len(self.unsettled), self.held_bytes)
        if small is not None:
            self.window = small
        return small

    def narrow_window(self) -> Window | None:
        """Before jobs are settled without a pull: the window that the queue must know of first, or
        it could deliver more than was granted."""
        if self.credit is None or not self.credit.narrows or self.state == "not_interested":
            return None
        return self.next_window()

    def reopened_window(self) -> Window | None:
        """After that: the window to be interested again with, if there is credit left."""
        if self.credit is None or not self.credit.narrows:
            return None
        window = self.next_window()
        return window if window.jobs > len(self.unsettled) else None

    def set_window(self, jobs: int, bytes: int) -> Window:
        """A window that the caller chose. Raises ConfigError where a manager does."""
        if self.credit is not None:
            raise ConfigError("credit", "this consumer's window is its credit manager's: use grant")
        self.window = Window(jobs, bytes)
        return self.window

    def grant_window(self, jobs: int, bytes: int) -> Window:
        """So much more than until now."""
        if self.credit is not None:
            self.credit.add(jobs, bytes)
            return self.next_window()
        self.window = Window(self.window.jobs + jobs, self.window.bytes + bytes)
        return self.window

    def no_credit(self) -> Window:
        """What was granted is given up."""
        if self.credit is not None:
            self.credit.clear()
        self.window = NO_CREDIT
        return self.window
