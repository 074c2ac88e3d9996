"""`make test-django`: Django's own tests of task backends on rqueue's, in .venv-django.

Django 6 needs Python 3.12. Its wheel has no tests, its source distribution has: both are fetched
with pip, of the same version.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from glob import glob
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv-django"
NEWEST = ("python3.14", "python3.13", "python3.12")


def interpreter() -> str:
    """A Python that Django 6 runs on. Raises SystemExit where there is none."""
    named = os.environ.get("PYTHON")
    pyenv = sorted(glob(os.path.expanduser("~/.pyenv/versions/3.1[2-9]*/bin/python")), reverse=True)
    for python in (*([named] if named else []), *NEWEST, *pyenv):
        program = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))"
        try:
            run = subprocess.run([python, "-c", program], capture_output=True, check=False)
        except OSError:
            continue
        if run.returncode == 0:
            return python
    sys.exit("test-django: Django 6 needs Python 3.12 or newer; name it: PYTHON=/path/to/python3")


def main() -> int:
    """Make the environment, fetch the tests, run them."""
    python = VENV / "bin" / "python"
    if not python.exists():
        subprocess.run([interpreter(), "-m", "venv", VENV], check=True)
    pip = [python, "-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "-e", f"{ROOT}[django,embedded]", "setuptools"], check=True)
    said = [python, "-c", "import django; print(django.__version__)"]
    version = subprocess.run(said, check=True, capture_output=True, text=True).stdout.strip()
    folder = VENV / f"django-{version}"
    if not folder.exists():
        fetch = ["download", "--no-deps", "--no-binary", ":all:", "-d", VENV, f"django=={version}"]
        subprocess.run([*pip, *fetch], check=True)
        with tarfile.open(VENV / f"django-{version}.tar.gz") as archive:
            archive.extractall(VENV, filter="data")
    run = [python, "-m", "tests.contrib.django_suite", folder / "tests"]
    return subprocess.run(run, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
