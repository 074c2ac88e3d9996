"""The oldest redis-py that pyproject.toml allows has what is used of it."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]

OLDEST = "5.1"
ITS_ERRORS = """
    AskError AuthenticationError AuthenticationWrongNumberOfArgsError AuthorizationError
    BusyLoadingError ChildDeadlockedError ClusterCrossSlotError ClusterDownError ClusterError
    ConnectionError DataError ExecAbortError InvalidResponse LockError LockNotOwnedError
    MasterDownError MaxConnectionsError ModuleError MovedError NoPermissionError NoScriptError
    OutOfMemoryError PubSubError ReadOnlyError RedisClusterException RedisError ResponseError
    SlotNotCoveredError TimeoutError TryAgainError WatchError
"""
"""What `redis.exceptions` of that version defines."""


def test_no_error_is_newer_than_the_oldest_redis_py() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"redis>={OLDEST}" in project["dependencies"]
    used: set[str] = set()
    for folder in ("rqueue", "workers"):
        for path in (ROOT / folder).rglob("*.py"):
            source = path.read_text()
            used.update(re.findall(r"\b(?:rx|redis\.exceptions)\.([A-Z]\w+)", source))
            for names in re.findall(r"from redis\.exceptions import ([\w, ]+)", source):
                used.update(name.strip() for name in names.split(","))
    assert used, "none found: the test looks in the wrong place"
    assert used <= set(ITS_ERRORS.split()), "look these up softly, or ask for a newer redis-py"
