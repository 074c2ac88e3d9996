from pathlib import Path

import pytest

from rqueue.spark import java
from tests.support import need_java


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Java; its programs are those in this folder."""
    monkeypatch.setattr(java, "_PLACES", ())
    monkeypatch.delenv("JAVA_HOME", raising=False)
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_where_java_is_nothing_happens(capfd: pytest.CaptureFixture[str]) -> None:
    assert need_java.main() == 0
    assert capfd.readouterr() == ("", "")


def test_who_may_not_install_gets_the_line(
    bare: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program(bare, "apt-get", "exit 0")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert need_java.main() == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert "apt-get install openjdk-17-jre-headless" in line


def test_who_may_gets_a_java(
    bare: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A newer release: it has no Java 17, and its lists have to be fetched first."""
    made = bare / "java"
    program(bare, "apt-cache", f'[ -e {bare}/lists ] && [ "$2" = openjdk-21-jre-headless ] && echo')
    program(
        bare,
        "apt-get",
        f'if [ "$1" = update ]; then : > {bare}/lists; exit; fi\n'
        f'echo "$@"; printf \'#!/bin/sh\\necho "version \\\\"21.0.1\\\\""\' > {made}\n'
        f"/bin/chmod +x {made}",
    )
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert need_java.main() == 0
    said = capfd.readouterr().out
    assert "install -q -y --no-install-recommends openjdk-21-jre-headless" in said
    assert "make: installed" in said and "version=21" in said


def test_an_installation_that_fails_fails(
    bare: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program(bare, "apt-cache", "echo")
    program(bare, "apt-get", "exit 100")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert need_java.main() == 1
    assert "could not be installed" in capfd.readouterr().err
