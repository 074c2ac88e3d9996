import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from rqueue.embedded.server import EmbeddedRedis
from tests.support.command_line import invoke


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without a development server, and no URL in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("RQUEUE_"):
            monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def run(server: EmbeddedRedis, spark: object, away: Path) -> Callable[..., Result]:
    """Runs `rqueue pipeline ...` in this process, on the shared server and Spark session."""

    def call(*args: str, url: str = "", code: int = 0, **more: Any) -> Result:
        return invoke("--url", url or server.url, "pipeline", *args, code=code, **more)

    return call


@pytest.fixture
def read(run: Callable[..., Result]) -> Callable[..., Any]:
    """Runs a command with --json and returns its document."""

    def call(*args: str, **more: Any) -> Any:
        return json.loads(run(*args, "--json", **more).stdout)

    return call
