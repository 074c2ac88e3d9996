"""The README's first job, run as it is written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def _block(language: str, holding: str) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    (found,) = [block for block in blocks if holding in block]
    return str(found)


def _commands() -> list[str]:
    lines = _block("console", "add.enqueue").splitlines()
    return [line[2:].split("  #")[0].rstrip() for line in lines if line.startswith("$ ")]


@pytest.mark.timeout(90)
def test_the_first_job_runs_as_written(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(_block("python", "tasks.py"))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RQUEUE_")}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    environment["PYTHONPATH"] = f"{ROOT}:{ROOT / 'workers'}"
    dev, worker, call = _commands()

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            shell=True,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    started = run(dev)
    assert started.returncode == 0, started.stderr
    try:
        with (tmp_path / "worker.log").open("wb") as log:
            pool = subprocess.Popen(
                worker.removesuffix("&").split(),
                cwd=tmp_path,
                env=environment,
                stdout=log,
                stderr=log,
            )
        try:
            answer = run(call)
            assert answer.stdout == "5\n", answer.stderr + (tmp_path / "worker.log").read_text()
        finally:
            pool.terminate()
            assert pool.wait(30) == 0
    finally:
        stopped = run("rqueue dev --stop")
        assert stopped.returncode == 0, stopped.stderr


def test_every_page_it_names_exists() -> None:
    for page in re.findall(r"\]\((docs/[^)#]+)", README):
        assert (ROOT / page).exists(), page
