"""`make test` and `.ci/run`: what runs in many processes; no failure is hidden."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[2]
OF_A_RUN = ("MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "ARGS", "PYTEST_ADDOPTS")


def program(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run it as from a shell, not as a part of the run that this test is in."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in OF_A_RUN and not name.startswith("PYTEST_XDIST")
    }
    return subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_example_fails_because_the_machine_is_busy() -> None:
    """Nor does a run try others than the one before, unless it is asked to."""
    assert settings.default is not None and settings.default.deadline is None
    thorough = os.environ.get("RQUEUE_TEST_PROFILE") == "thorough"
    assert settings.default.derandomize is not thorough


def test_programs_that_tests_start_are_compiled_once() -> None:
    """Also where the caller's environment has Python write no .pyc files."""
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ
    assert not sys.dont_write_bytecode


@pytest.mark.parametrize(
    ("arguments", "parallel"),
    [("", True), ("-x --durations=5", True), ("tests/lua -x", False), ("-k order", False)],
)
@pytest.mark.parametrize("target", ["test", "test-all"])
def test_only_the_whole_suite_runs_in_many_processes(
    target: str, arguments: str, parallel: bool
) -> None:
    said = program("make", "-n", target, f"ARGS={arguments}", cwd=ROOT)
    assert said.returncode == 0, said.stderr
    (line,) = (line for line in said.stdout.splitlines() if "-m pytest" in line)
    assert (" -n logical" in line) is parallel
    assert line.endswith(arguments)


def test_a_process_that_dies_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "test_death.py").write_text(
        "import os\n"
        "def test_before(): pass\n"
        "def test_that_kills_its_process(): os._exit(0)\n"
        "def test_after(): pass\n"
    )
    run = program(sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", cwd=tmp_path)
    assert run.returncode == 1
    assert "1 failed, 2 passed" in run.stdout
    assert "FAILED test_death.py::test_that_kills_its_process" in run.stdout


SUMMARY = "=== 3 passed in 1.00s ==="


@pytest.mark.parametrize(
    ("lint", "test", "code"),
    [("true", "true", 0), ("false", "true", 2), ("true", "false", 2), ("false", "false", 2)],
)
def test_the_gate_fails_where_lint_or_tests_do(
    tmp_path: Path, lint: str, test: str, code: int
) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    (tmp_path / "Makefile").write_text(
        f"lint:\n\t@{lint}\ntest:\n\t@echo '{SUMMARY}'; echo more\n\t@{test}\n"
    )
    run = program("bash", ".ci/run", cwd=tmp_path)
    assert run.returncode == code
    assert run.stdout.splitlines()[-1] == SUMMARY
    assert ("make lint failed" in run.stdout) is (lint == "false")


def test_the_gate_says_so_where_tests_do_not_end(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    (tmp_path / "Makefile").write_text("lint:\n\t@true\ntest:\n\t@exit 7\n")
    run = program("bash", ".ci/run", cwd=tmp_path)
    assert run.returncode == 2
    assert run.stdout.splitlines()[-1] == "the tests did not get as far as a summary"
