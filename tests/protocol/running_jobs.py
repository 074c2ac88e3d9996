"""Samples of the calls about jobs that run."""

from rqueue.protocol import commands
from rqueue.protocol.commands import JobReport
from tests.protocol.sample import K, Sample

SAID = JobReport("i1", 2, b"[1,2]", "t", 3, [b"1,20;x"])

RUNNING: dict[str, list[Sample]] = {
    "keep_steps": [
        Sample(commands.keep_steps(K, "consumer", "term", "id", 2, "steps"), {"deliveries": "2"})
    ],
    "report": [
        Sample(
            commands.report(K, "consumer", "term", [SAID], ["x"]),
            {"reports": 1},
            [*SAID[:5], 1, *SAID.lines, "x"],
        )
    ],
    "watch": [
        Sample(commands.watch(K, "id"), {"how": "look", "after": 0}),
        Sample(commands.watch_on(K, "id"), {"how": "wait", "after": 0}),
    ],
    "note_stop": [
        Sample(commands.note_stop(K, "consumer", "ended", ["i1"]), {"stage": "ended"}, rest=["i1"])
    ],
    "read_stop": [Sample(commands.read_stop(K, "id"))],
}
