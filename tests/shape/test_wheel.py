"""What is shipped works: as a wheel, from a zip, as an editable install, in a bare checkout."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from rqueue.protocol.scripts import SCRIPTS

ROOT = Path(__file__).resolve().parents[2]

# -I: neither the working directory nor the caller's environment help.
PROGRAM = """
import json, sys
sys.path[:0] = sys.argv[1:]
import rqueue, rqueue_workers
from rqueue.protocol.scripts import SCRIPTS
print(json.dumps({
    "rqueue": rqueue.__file__,
    "workers": rqueue_workers.__file__,
    "lua": str(SCRIPTS.root),
    "shas": {name: SCRIPTS.script(name).sha for name in SCRIPTS.names()},
}))
"""


def look(cwd: Path, *path: Path, program: str = PROGRAM) -> dict[str, object]:
    run = subprocess.run(
        [sys.executable, "-I", "-c", program, *map(str, path)],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, object] = json.loads(run.stdout)
    return found


def shipped() -> dict[str, str]:
    return {name: SCRIPTS.script(name).sha for name in SCRIPTS.names()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built offline with the build backend of the environment."""
    target = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps"]
    run = subprocess.run(
        [*build, "--no-index", "--disable-pip-version-check", "-w", target, ROOT],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    (built,) = target.glob("rqueue-*.whl")
    return built


def test_the_wheel_holds_both_packages_and_the_scripts(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"rqueue", "rqueue_workers"}
    assert {"rqueue/py.typed", "rqueue_workers/py.typed"} <= names
    lua = {path.relative_to(ROOT).as_posix() for path in (ROOT / "lua").rglob("*.lua")}
    ours = {name for name in names if name.endswith(".lua")}
    ours.remove("rqueue/transport/memory/redis_api.lua")  # no script of a queue's
    assert {f"rqueue/{path}" for path in lua} == ours
    python = {path.relative_to(ROOT).as_posix() for path in (ROOT / "rqueue").rglob("*.py")}
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "rqueue").rglob("*.html")}
    assert python | pages <= names
    assert not [name for name in names if "__pycache__" in name or "tests/" in name]


def test_the_wheel_names_its_license_and_its_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        info = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = archive.read(info).decode()
        commands = archive.read(info.replace("METADATA", "entry_points.txt")).decode()
        licenses = [n for n in archive.namelist() if n.endswith("licenses/LICENSE")]
    assert "License-Expression: Apache-2.0" in metadata
    assert len(licenses) == 1
    assert "rqueue = rqueue.cli:main" in commands


def test_it_works_from_a_zip(wheel: Path, tmp_path: Path) -> None:
    found = look(tmp_path, wheel)
    assert found["rqueue"] == str(wheel / "rqueue" / "__init__.py")
    assert found["workers"] == str(wheel / "rqueue_workers" / "__init__.py")
    assert str(found["lua"]).startswith(str(wheel))
    assert found["shas"] == shipped()


def test_it_works_unpacked(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    (site / "lua").mkdir()  # another distribution's; ours is inside the package
    found = look(tmp_path, site)
    assert found["rqueue"] == str(site / "rqueue" / "__init__.py")
    assert found["lua"] == str(site / "rqueue" / "lua")
    assert found["shas"] == shipped()


def test_without_its_scripts_it_says_so(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    shutil.rmtree(site / "rqueue" / "lua")
    shutil.copytree(ROOT / "lua", site / "lua")  # beside an installed package: not a checkout
    program = (
        "import json, sys\n"
        "sys.path[:0] = sys.argv[1:]\n"
        "from rqueue.errors import ScriptSourceError\n"
        "from rqueue.protocol.lua_folder import find_lua\n"
        "try:\n"
        "    find_lua()\n"
        "except ScriptSourceError as error:\n"
        "    print(json.dumps({'said': str(error)}))\n"
    )
    said = str(look(tmp_path, site, program=program)["said"])
    assert "Lua scripts are missing" in said
    assert "reinstall rqueue" in said


def test_an_edit_in_a_checkout_takes_effect(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for folder in ("rqueue", "lua", "workers"):
        shutil.copytree(
            ROOT / folder, checkout / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(ROOT / "pyproject.toml", checkout)
    path = (checkout, checkout / "workers")
    before = look(tmp_path, *path)
    assert before["lua"] == str(checkout / "lua")
    assert before["shas"] == shipped()
    name = SCRIPTS.names()[0]
    edited = checkout / "lua" / f"{name}.lua"
    edited.write_text(edited.read_text() + "-- edited\n")
    after = look(tmp_path, *path)
    assert after["shas"] != before["shas"]


def test_the_environment_s_editable_install_reads_the_checkout(tmp_path: Path) -> None:
    """An editable install leaves a copy of lua/ in site-packages; that must not be what is read."""
    found = look(tmp_path)
    assert found["rqueue"] == str(ROOT / "rqueue" / "__init__.py")
    assert found["lua"] == str(ROOT / "lua")
