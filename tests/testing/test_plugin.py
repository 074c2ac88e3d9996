"""The plugin as pytest loads it in a project of its own; the mixin, by unittest and Django."""

from __future__ import annotations

import subprocess
import sys
import unittest
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rqueue.tasks.registry import registry
from rqueue.testing import RqueueTestMixin

PROJECT = """
import unittest
import pytest
from rqueue import task
from rqueue.testing import RqueueTestMixin

outbox = []

@task(queue="mail")
def send(to):
    outbox.append(to)

def test_fixture(rqueue):
    send.enqueue("a")
    rqueue.assert_enqueued(send, args=["a"])
    rqueue.drain()
    assert outbox == ["a"]

@pytest.mark.rqueue(inline=True)
def test_inline(rqueue):
    send.enqueue("b")
    assert outbox[-1] == "b"

@pytest.mark.rqueue(at="2030-01-31T08:00Z")
def test_at(rqueue):
    assert rqueue.now.isoformat() == "2030-01-31T08:00:00+00:00"

class Cases(RqueueTestMixin, unittest.TestCase):
    def test_mixin(self):
        send.enqueue("c")
        self.assertEqual(self.rqueue.drain().ran, 1)
"""

LIGHT = """
import sys
import pytest
before = set(sys.modules)
import rqueue_workers.pytest_plugin
print(sorted(set(sys.modules) - before))
"""


WRONG_MARKERS = """
import pytest

@pytest.mark.rqueue(eager=True, at=None)
def test_unknown(rqueue): ...

@pytest.mark.rqueue(True)
def test_without_a_name(rqueue): ...
"""


def test_a_project_has_the_fixture(tmp_path: Path) -> None:
    (tmp_path / "test_project.py").write_text(PROJECT)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "4 passed" in ran.stdout


def test_a_marker_that_says_something_else_names_itself(tmp_path: Path) -> None:
    (tmp_path / "test_project.py").write_text(WRONG_MARKERS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "2 errors" in ran.stdout, ran.stdout
    assert "Traceback" not in ran.stdout
    known = "it is written rqueue(inline=False, at=None)"
    assert f"@pytest.mark.rqueue does not know eager; {known}" in ran.stdout
    assert f"@pytest.mark.rqueue does not know True; {known}" in ran.stdout


def test_the_plugin_loads_nothing() -> None:
    said = subprocess.run(
        [sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True
    ).stdout
    assert said.strip() == "['rqueue_workers', 'rqueue_workers.pytest_plugin']"


def test_a_django_test_case_has_the_harness() -> None:
    program = Path(__file__).with_name("django_project.py")
    ran = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "Ran 2 tests" in ran.stderr


class _Case(RqueueTestMixin, unittest.TestCase):
    rqueue_inline = True
    rqueue_at = datetime(2030, 1, 31, 8, tzinfo=UTC)

    def runTest(self) -> None:
        from rqueue import task

        ran = []

        @task(name="mixed", queue="q")
        def mixed() -> None:
            ran.append(1)

        mixed.enqueue()
        self.assertEqual(ran, [1])
        self.assertEqual(self.rqueue.now, self.rqueue_at)


def test_the_mixin_may_run_inline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_tasks", {})
    result = unittest.TestResult()
    _Case().run(result)
    assert result.wasSuccessful(), result.errors + result.failures
