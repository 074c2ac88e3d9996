"""Without the extra rqueue[spark]: one line that says what to install, and exit code 6."""

import importlib.metadata
import sys
from collections.abc import Callable

import pytest
from click.testing import Result

from rqueue.cli.pipeline.history_options import EXTRA

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter where nothing of the extra can be found."""

    def version(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("rqueue.spark.registration.version", version)
    for loaded in list(sys.modules):
        if loaded.split(".")[0] in EXTRA or loaded.startswith("rqueue.pipeline."):
            monkeypatch.delitem(sys.modules, loaded)
    for name in EXTRA:
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize(
    "words",
    [
        "pipeline archive --lake lake",
        "pipeline report --lake lake --out page.html",
        "pipeline replay --lake lake --where true --queue mail",
        "pipeline plan",
        "pipeline load rows.csv --format csv --task app.add -q mail",
        "demo --spark",
    ],
)
def test_without_spark_it_says_what_to_install(run: Run, words: str) -> None:
    said = run(*words.split(), code=6).stderr
    assert "is not installed; pip install 'rqueue[spark]'" in said
    assert said.count("\n") == 1
