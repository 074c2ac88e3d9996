"""Who is woken in the model, and who watches the schedule."""

from __future__ import annotations

from tests.property.entities import Consumer
from tests.property.state import State

NOTIFIED_MS = 5000


class WakeUps(State):
    """Consumers change their states, and tell each other."""

    def move(self, c: Consumer, to: str) -> None:
        c.state = to
        if to == "interested":
            self.turns += 1
            c.turn = self.turns
        elif to == "notified":
            c.notified_until = self.now + NOTIFIED_MS

    def wake(self, c: Consumer) -> None:
        if c.state == "interested":
            self.move(c, "notified")
            c.wake.append(b"w")

    def pass_timer(self) -> None:
        self.timer = ""
        if self.scheduled and (waiting := self.interested()):
            self.wake(waiting[-1])

    def highest_notified(self) -> int | None:
        ranks = [c.priority for c in self.in_state("notified") if c.free > 0]
        return max(ranks) if self.ranked and ranks else None

    def notify(self, arrivals: int) -> None:
        floor, covered = self.highest_notified(), 0
        for c in self.interested()[:arrivals]:
            if covered >= arrivals or (floor is not None and c.priority < floor):
                break
            self.wake(c)
            if c.name == self.timer:
                self.pass_timer()
            covered += max(1, c.free)

    def watched(self) -> bool:
        holder = self.consumers.get(self.timer)
        return holder is not None and holder.state == "interested"

    def drop_timer(self, c: Consumer) -> None:
        if self.timer == c.name:
            self.timer = ""

    def pass_on(self) -> None:
        if self.paused or not self.interested():
            return
        if self.work_waits():
            self.notify(1)
        elif self.scheduled and not self.in_state("notified") and not self.watched():
            self.pass_timer()

    def tell_browsers(self) -> None:
        for c in self.in_state("browsers"):
            if not c.wake:
                c.wake.append(b"w")

    def settle_state(self, c: Consumer, to: str) -> None:
        """Where a call leaves its own consumer. It answers a wake-up that was not read."""
        if to == c.state and to not in ("interested", "notified"):
            return
        if c.state == "notified" and to != "notified":
            c.wake = [word for word in c.wake if word != b"w"]
        self.move(c, to)

    def gone(self, ids: list[str], by: Consumer | None = None) -> None:
        """Who lacked the bytes for one of these jobs looks again, if it still has credit."""
        for id in ids:
            for name in self.byte_waiters.pop(id, []):
                c = self.consumers.get(name)
                if c and c is not by and c.state == "not_interested" and c.free > 0:
                    self.move(c, "notified")
                    c.wake.append(b"w")
