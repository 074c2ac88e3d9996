"""Pythons of this machine, by version."""

from __future__ import annotations

import os
import subprocess

__all__ = ["interpreter"]


def interpreter(version: str) -> str | None:
    """The Python of a version ("3.12") that can make environments, or None. A name on PATH proves
    little, so it is run; pyenv's names run the version that the environment asks for."""
    program = "import sys, venv, ensurepip; print(sys.executable)"
    asked = {**os.environ, "PYENV_VERSION": version}
    try:
        run = subprocess.run(
            [f"python{version}", "-c", program], env=asked, capture_output=True, text=True
        )
    except OSError:
        return None
    return run.stdout.strip() if run.returncode == 0 else None
