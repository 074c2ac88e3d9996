import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rqueue.spark import java
from rqueue.spark.errors import JavaMissing, SparkMissing
from rqueue.spark.registration import require_spark


def fake(folder: Path, version: str) -> Path:
    """A Java that answers as one of that version; returns its home."""
    home = folder / f"java-{version}"
    (home / "bin").mkdir(parents=True)
    program = home / "bin/java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return home


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which no Java is installed in the usual places."""
    monkeypatch.setattr(java, "_PLACES", ())


def test_the_one_of_this_machine() -> None:
    found = java.find_java()
    assert found.version >= java.OLDEST
    assert (found.home / "bin/java").exists()


@pytest.mark.usefixtures("bare")
def test_java_home_comes_first(tmp_path: Path) -> None:
    home, other = fake(tmp_path, "21.0.1"), fake(tmp_path, "17.0.9")
    found = java.find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (found.home, found.version) == (home, 21)
    assert java.find_java({"PATH": str(other / "bin")}).home == other


@pytest.mark.usefixtures("bare")
def test_an_older_one_is_passed_over(tmp_path: Path) -> None:
    old, new = fake(tmp_path, "1.8.0_402"), fake(tmp_path, "17.0.9")
    environ = {"JAVA_HOME": str(old), "PATH": str(new / "bin")}
    assert java.find_java(environ).home == new
    with pytest.raises(JavaMissing, match=r"java-1.8.0_402 is Java 8: install one"):
        java.find_java({"JAVA_HOME": str(old), "PATH": ""})


@pytest.mark.usefixtures("bare")
def test_none_at_all_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    stub = tmp_path / "bin/java"
    stub.parent.mkdir()
    stub.write_text("#!/bin/sh\necho 'no Java runtime present' >&2; exit 1\n")
    stub.chmod(0o755)
    with pytest.raises(JavaMissing) as error:
        java.find_java({"PATH": str(stub.parent)})
    assert "apt-get install openjdk-17-jre-headless" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_session_without_java_says_so(tmp_path: Path) -> None:
    program = "from rqueue.spark import java, session\njava._PLACES = ()\nsession('local[1]')\n"
    said = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": str(tmp_path), "HOME": os.environ.get("HOME", "/")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 1
    assert said.stderr.splitlines()[-1].startswith("rqueue.spark.errors.JavaMissing: Spark needs")


def test_without_pyspark_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import PackageNotFoundError

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("rqueue.spark.registration.version", missing)
    with pytest.raises(SparkMissing, match=r"pyspark is not installed; pip install 'rqueue\[spark"):
        require_spark()
    monkeypatch.setattr("rqueue.spark.registration.version", lambda name: "3.5.4")
    with pytest.raises(SparkMissing, match=r"pyspark 3.5.4 is older than"):
        require_spark()


def test_the_package_without_pyspark(tmp_path: Path) -> None:
    """Its import works; using it is one clear line."""
    program = (
        "import sys\n"
        "sys.modules['pyspark'] = sys.modules['pyarrow'] = None\n"
        "import importlib.metadata as m\n"
        "def gone(name): raise m.PackageNotFoundError(name)\n"
        "m.version = gone\n"
        "import rqueue.spark\n"
        "try: rqueue.spark.register(None)\n"
        "except rqueue.spark.SparkMissing as error: print(error)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert said == "pyspark is not installed; pip install 'rqueue[spark]'\n"
