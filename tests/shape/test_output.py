"""One way out: what rqueue prints and logs goes through what escapes it."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(
    path.relative_to(ROOT)
    for base in ("rqueue", "workers/rqueue_workers")
    for path in (ROOT / base).rglob("*.py")
)
MAY_ECHO = {
    "rqueue/cli/output.py": "it escapes",
    "rqueue/cli/root.py": "the version",
    "rqueue/cli/reference.py": "the documentation",
    "rqueue/cli/pipeline/report.py": "a page of HTML, escaped as such",
    "rqueue/cli/pipeline/plan.py": "YAML, written by its own rules",
}
MAY_GET = {"rqueue/logs.py", "workers/rqueue_workers/pool/log_setup.py"}


def test_output_is_escaped_in_one_place() -> None:
    echo, log = [], []
    for path in SOURCES:
        text = (ROOT / path).read_text(encoding="utf-8")
        may_echo = str(path) in MAY_ECHO or "demo" in path.parts
        if not may_echo and re.search(r"\bclick\.echo\(", text):
            echo.append(str(path))
        if str(path) not in MAY_GET and re.search(r"\bgetLogger\((\"rqueue|__name__)", text):
            log.append(str(path))
    assert echo == [], "use rqueue.cli.output.echo"
    assert log == [], "use rqueue.logs.logger"
