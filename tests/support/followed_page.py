"""A page of docs/ that is followed word for word: its files are made, its commands are run."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

from tests.support.patience import PATIENCE
from tests.support.ports import free_port
from tests.workers.pools import eventually

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
NOT_AN_ID = "%01"
"""What may stand for a job's id in a URL, and no job can have."""
BEGINS = "$ rqueue dev --background\n"
PORT = "8000"


class FollowedPage:
    """A page, in a folder where it is followed. What it starts ends with `close`."""

    def __init__(self, page: str, folder: Path) -> None:
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        blocks = BLOCK.findall(text)
        self.files = {
            found[1]: block[found.end() :]
            for language, block in blocks
            if language == "python" and (found := re.match(r"# (\S+\.py)\n", block))
        }
        (self._session,) = (block for _, block in blocks if block.startswith(BEGINS))
        self._folder = folder
        self._log = folder / "log"
        self._started: list[subprocess.Popen[bytes]] = []
        self._job = ""
        self._port = str(free_port())

    def make_files(self) -> None:
        for name, text in self.files.items():
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def follow(self) -> None:
        """Run its commands; what they print is what it says, `...` is any text."""
        for part in self._session.split("$ ")[1:]:
            command, _, wanted = part.partition("\n")
            if command.endswith(" &"):
                self._start(command.removesuffix(" &"))
                continue
            pattern = re.escape(wanted.strip()).replace(re.escape("..."), "(.+)")
            said = self._run(command).strip()
            end = time.monotonic() + PATIENCE
            # on a slow machine a page may say first that the job has not ended
            while command.startswith("curl ") and " -d " not in command and time.monotonic() < end:
                if re.fullmatch(pattern, said):
                    break
                said = self._run(command).strip()
            if wanted:
                found = re.fullmatch(pattern, said)
                assert found, f"{command}\nprinted {said!r}\nnot    {wanted!r}\n{self.log}"
                self._job = found[1] if found.groups() else self._job

    def status_of(self, path: str) -> int:
        """What the page's web server answers to a GET."""
        url = f"http://127.0.0.1:{self._port}{path}"
        return int(self._run(f"curl -s -o answer -w '%{{http_code}}' '{url}'"))

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8") if self._log.exists() else ""

    @property
    def _environ(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        kept = {k: v for k, v in os.environ.items() if "RQUEUE" not in k and "REDIS" not in k}
        return {**kept, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}

    def _here(self, command: str) -> str:
        return command.replace(PORT, self._port).replace("...", self._job)

    def _run(self, command: str) -> str:
        if command.startswith("curl "):
            eventually(self._listens, lambda: f"nobody listens\n{self.log}")
        run = subprocess.run(
            ["bash", "-c", self._here(command)],
            cwd=self._folder,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert run.returncode == 0, f"{command}: {run.stdout}{run.stderr}\n{self.log}"
        return run.stdout

    def _listens(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", int(self._port)), 1):
            return True
        return False

    def _start(self, command: str) -> None:
        with self._log.open("ab") as log:
            self._started.append(
                subprocess.Popen(
                    ["bash", "-c", f"exec {self._here(command)}"],
                    cwd=self._folder,
                    env=self._environ,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            )

    def end(self) -> list[int]:
        """End what it started as Ctrl-C does; the exit codes."""
        for process in self._started:
            process.send_signal(signal.SIGINT)
        return [process.wait(PATIENCE) for process in self._started]

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                for one in (*psutil.Process(process.pid).children(recursive=True), process):
                    with suppress(psutil.NoSuchProcess):
                        one.kill()
                process.wait()
        self._run("rqueue dev --stop")
