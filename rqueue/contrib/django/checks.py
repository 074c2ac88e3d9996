"""What `manage.py check` says; what needs Redis is asked by `check --deploy`."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from traceback import extract_tb
from typing import Any

from django.core.checks import CheckMessage, Error, Warning

import rqueue
from rqueue.contrib.django.conf import DEFAULT_MODULES, Conf, read
from rqueue.contrib.django.task_modules import task_modules
from rqueue.errors import ConfigError, RQueueError
from rqueue.tasks.registry import registry
from rqueue.transport.discovery import DEV_DIRECTORY, running
from rqueue.transport.redis_client import open_client
from rqueue.transport.server_check import server_facts

__all__ = ["check_modules", "check_server", "check_settings", "check_tasks"]

OURS = str(Path(rqueue.__file__).parent)
NO_URL = "nothing says where the queues are: neither RQUEUE['url'] nor RQUEUE_URL"


def _conf() -> Conf | None:
    try:
        return read()
    except ConfigError:
        return None


def check_settings(app_configs: Any = None, **_: Any) -> Sequence[CheckMessage]:
    """E001: RQUEUE is wrong. W001: nothing says where Redis is."""
    try:
        conf = read()
        missing = conf.settings.url is None and running(DEV_DIRECTORY) is None
    except ConfigError as error:
        return [Error(str(error), id="rqueue.E001")]
    if missing:
        hint = "RQUEUE = {'url': 'redis://localhost:6379/0'}; 'rqueue dev' starts a server here"
        return [Warning(NO_URL, hint=hint, id="rqueue.W001")]
    return []


def check_tasks(app_configs: Any = None, **_: Any) -> Sequence[CheckMessage]:
    """E004: a module with tasks cannot be imported, so no worker starts. W002: a task goes to a
    queue that RQUEUE['queues'] does not name."""
    conf = _conf()
    if conf is None:
        return []
    found: list[CheckMessage] = []
    for module in task_modules(conf.modules):
        try:
            import_module(module)
        except Exception as error:
            found.append(_failed(module, error))
    if not conf.queues:
        return found
    for task in registry:
        if task.queue not in conf.queues:
            near = get_close_matches(task.queue, conf.queues, 1)
            hint = f"did you mean '{near[0]}'?" if near else None
            said = (
                f"task '{task.name}' goes to queue '{task.queue}', which is not in RQUEUE['queues']"
            )
            found.append(Warning(said, hint=hint, obj=task.place, id="rqueue.W002"))
    return found


def _failed(module: str, error: Exception) -> CheckMessage:
    _, _, *frames = extract_tb(error.__traceback__)  # behind ours, and that of import_module
    code = [frame for frame in frames if not frame.filename.startswith("<frozen")]
    *_, last = [*takewhile(lambda frame: not frame.filename.startswith(OURS), code)] or frames
    said = f"module '{module}' cannot be imported: {type(error).__name__}: {error}"
    hint = f"raised in {last.filename}:{last.lineno}; no worker starts until it is mended"
    return Error(said, hint=hint, id="rqueue.E004")


def check_modules(app_configs: Any = None, **_: Any) -> Sequence[CheckMessage]:
    """W005: a name of RQUEUE['modules'] that no installed app has as a module."""
    conf = _conf()
    if conf is None or conf.modules == DEFAULT_MODULES:
        return []
    found = []
    for name in conf.modules:
        if not any(task_modules([name])):
            said = f"no installed app has a module {name!r}, which RQUEUE['modules'] names"
            hint = "names of modules inside of apps, as ['tasks', 'jobs'] for shop/tasks.py"
            found.append(Warning(said, hint=hint, id="rqueue.W005"))
    return found


def check_server(app_configs: Any = None, **_: Any) -> Sequence[CheckMessage]:
    """W003: the server cannot be reached, or cannot be used (too old, a replica). W004: it may
    lose jobs (it evicts keys, or keeps no file)."""
    conf = _conf()
    if conf is None or conf.settings.url is None:
        return []
    client = open_client(
        conf.settings.url,
        socket_connect_timeout=conf.settings.connect_timeout,
        socket_timeout=conf.settings.connect_timeout,
    )
    try:
        facts = server_facts(client)
    except RQueueError as error:
        return [Warning(str(error), id="rqueue.W003")]
    finally:
        client.close()
    if problem := facts.replica or facts.problem:
        return [Warning(str(problem), id="rqueue.W003")]
    if facts.warning:
        return [Warning(facts.warning, id="rqueue.W004")]
    if not facts.persistent:
        said = f"{facts.name} keeps no append-only file: jobs are lost when it restarts"
        return [Warning(said, id="rqueue.W004")]
    return []
