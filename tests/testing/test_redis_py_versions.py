"""The test kit runs with each redis-py that pyproject.toml allows."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSIONS = ("5.1.0", "5.2.1", "5.3.1", "6.2.0", "6.4.0", "7.0.0", "7.1.0", "7.2.0", "8.0.0")


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
def test_the_kit_runs_with_redis_py(version: str, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(tmp_path)]
    subprocess.run([*pip, f"redis=={version}"], check=True)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    said = subprocess.run(
        [sys.executable, "-c", "import redis; print(redis.__version__)"],
        env=environment, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert said.strip() == version
    kit = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests/testing"]
    ran = subprocess.run(kit, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-4000:]


def test_the_oldest_version_is_tried() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = ".".join(VERSIONS[0].split(".")[:2])
    assert f"redis>={oldest}" in project["dependencies"]
