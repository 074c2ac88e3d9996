"""How far a long command is, where there is no terminal."""

import pytest

from rqueue.cli.pipeline.meter import Meter


def test_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("rqueue.cli.pipeline.meter.time.monotonic", lambda: now)
    with Meter("rows", 1000) as meter:
        for done, later in (
            (100, 0.0),
            (150, 0.5),
            (400, 1.0),
            (400, 9.0),
            (1000, 0.3),
            (1000, 5.0),
        ):
            now += later
            meter.update(done)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "rows: 100 of 1,000",
        "rows: 400 of 1,000, 200/s",
        "rows: 1,000 of 1,000, 83/s",
    ]


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Meter("rows", quiet=True) as meter:
        meter.update(1)
        meter.update(5, 5)
    assert capsys.readouterr().err == ""
