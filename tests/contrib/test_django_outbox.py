"""A project of Django with an outbox, on PostgreSQL and on SQLite."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError
from tests.contrib import outbox_shop

ROOT = Path(__file__).resolve().parents[2]
postgres, database = outbox_shop.postgres, outbox_shop.database


def test_a_project_with_an_outbox(database: str, private_server: EmbeddedRedis) -> None:
    url = make_url(database)
    engine = "sqlite3" if url.get_backend_name() == "sqlite" else "postgresql"
    said: dict[str, Any] = {"ENGINE": f"django.db.backends.{engine}", "NAME": url.database}
    if engine == "postgresql":
        said |= {"USER": url.username, "HOST": url.host, "PORT": url.port}
    program = "tests.contrib.django_outbox_program"
    done = subprocess.run(
        [sys.executable, "-m", program, json.dumps(said), private_server.url],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_an_outbox_needs_its_app(django: Any) -> None:
    from rqueue.contrib.django.conf import read

    with (
        django.override(outbox=True),
        pytest.raises(ConfigError, match="INSTALLED_APPS, and run"),
    ):
        read()
