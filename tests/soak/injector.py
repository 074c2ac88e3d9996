"""Carries out the plan: one thread for each track, every fault on record."""

from __future__ import annotations

import random
import threading
import time
import traceback
from collections.abc import Sequence

import redis

from tests.soak.faults.scene import NoTarget, Scene
from tests.soak.field import Field
from tests.soak.schedule import Planned


class Injector:
    """Injects planned faults into a field. A track that is late goes on without pauses."""

    def __init__(self, field: Field) -> None:
        self._field = field
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._began = 0.0

    def start(self, tracks: Sequence[Sequence[Planned]]) -> None:
        """Begin, now."""
        self._began = time.monotonic()
        for planned in tracks:
            if planned:
                thread = threading.Thread(
                    target=self._track, args=(planned,), name=planned[0].track, daemon=True
                )
                self._threads.append(thread)
                thread.start()

    def stop(self) -> None:
        """Begin no more faults; return when those under way are over and undone."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _track(self, planned: Sequence[Planned]) -> None:
        for one in planned:
            if self._over.wait(max(0.0, self._began + one.at - time.monotonic())):
                return
            self._inject(one)

    def _inject(self, one: Planned) -> None:
        record = self._field.recorder.write
        facts = {"track": one.track, "number": one.number, "name": one.fault.name}
        began = time.monotonic()
        try:
            one.fault.act(Scene(self._field, random.Random(one.seed), self._over))
        except (NoTarget, redis.RedisError) as error:
            # nobody there, or Redis is just away for another reason: it does not count
            record("no target", said=repr(error)[:200], **facts)
        except Exception as error:
            trace = "".join(traceback.format_exception(error))
            record("fault failed", said=trace[-1500:], **facts)
        else:
            record("fault", planned=one.at, seconds=time.monotonic() - began, **facts)
