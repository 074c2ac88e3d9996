"""One soak from its beginning to its verdict."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rqueue.embedded.binaries import ServerBinary
from tests.soak.ending import Ending
from tests.soak.evidence import Evidence, gather
from tests.soak.faults.scene import Fault
from tests.soak.field import LEASE_S, RATE, Field
from tests.soak.injector import Injector
from tests.soak.plants import Plant
from tests.soak.records import read_records
from tests.soak.scenario import Scenario
from tests.soak.schedule import plan
from tests.soak.verdict import Verdict, judge


@dataclass(frozen=True)
class Soak:
    """What a soak is to be. `rate`: jobs a second and producer. `pressure`: a factor of how often
    faults come. `plants`: what is to be done behind everybody's back, so that the verdict has
    something to find. `patience`: seconds that what is left gets at the end."""

    binary: ServerBinary
    folder: Path
    seconds: float
    seed: int
    faults: Sequence[Fault]
    scenarios: Sequence[Scenario] = ()
    rate: float = RATE
    pressure: float = 1.0
    lease: float = LEASE_S
    plants: Sequence[Plant] = ()
    patience: float = 90.0

    def run(self, say: Callable[[str], None] = lambda _said: None) -> tuple[Verdict, Evidence]:
        """Run it; what became of it. say: called with what goes on."""
        field = Field(self.binary, self.folder, self.seed, self.lease, self.scenarios)
        planned = plan(self.seed, self.seconds, self.faults, self.pressure)
        over = threading.Event()
        field.start(self.rate)
        try:
            field.wait_ready()
            injector = Injector(field)
            say(f"{sum(map(len, planned.values()))} faults in {self.seconds:g} s, on {self.binary}")
            injector.start(list(planned.values()))
            over.wait(self.seconds)
            injector.stop()
            for plant in self.plants:
                plant(field)
            Ending(field, say, self.patience).run()
        finally:
            field.stop()
        evidence = gather(read_records(field.run.records))
        return judge(evidence, self.lease, self.scenarios), evidence
