"""The setting RQUEUE: a dict, checked as a whole.

| key | meaning |
| --- | --- |
| `url`, `namespace`, `signing_keys`, `lease`, `connect_timeout`, `command_timeout`, `max_wait`, \
`replicas`, `fsync`, `confirm`, `max_body` | as `rqueue.settings` has them; what is absent comes \
from the variables `RQUEUE_*` |
| `on_commit` | whether enqueues wait for the commit of the transaction around them: True (the \
default), False, or the alias of a database other than `default` |
| `outbox` | whether enqueues inside a transaction of that database are written into it, as a part \
of it, instead of waiting in memory for its commit: needs the app `rqueue.contrib.django.outbox` |
| `modules` | names of the modules with tasks that apps may have: `["tasks"]` |
| `queues` | names of the queues of this project: `manage.py rqueue worker` serves them if it is \
given none (all queues that the tasks name, if this is empty), and a task that goes elsewhere is \
warned of |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any

from django.apps import apps
from django.conf import settings as django_settings
from django.db import DEFAULT_DB_ALIAS

from rqueue.client.default_queues import configure as configure_queues
from rqueue.contrib.variables import environ_of
from rqueue.errors import ConfigError, InvalidName
from rqueue.model.expect import expect, shown
from rqueue.model.names import check_queue
from rqueue.settings import Settings

__all__ = ["Conf", "configure", "environ", "read"]

_SETTINGS = {
    "url": "url",
    "namespace": "namespace",
    "signing_keys": "signing_keys",
    "lease": "lease_ms",
    "connect_timeout": "connect_timeout",
    "command_timeout": "command_timeout",
    "max_wait": "max_wait",
    "replicas": "replicas",
    "fsync": "fsync",
    "confirm": "confirm_ms",
    "max_body": "max_body",
}
_KEYS = (*_SETTINGS, "on_commit", "outbox", "queues", "modules")

DEFAULT_MODULES = ("tasks",)
"""The modules of apps in which tasks are looked for, where RQUEUE says nothing."""

OUTBOX = "rqueue.contrib.django.outbox"
"""The app that gives a project an outbox."""


@dataclass(frozen=True, slots=True)
class Conf:
    """What RQUEUE says. on_commit: the alias of the database whose commits enqueues wait for, ""
    for none. outbox: whether they are written into it."""

    settings: Settings
    on_commit: str = DEFAULT_DB_ALIAS
    queues: tuple[str, ...] = ()
    modules: tuple[str, ...] = DEFAULT_MODULES
    outbox: bool = False


def read() -> Conf:
    """The setting RQUEUE as it is now. Raises ConfigError, which names the key."""
    given = getattr(django_settings, "RQUEUE", {})
    expect("RQUEUE", given, Mapping, "a dict, such as {'url': 'redis://localhost:6379/0'}")
    for key in given:
        if key not in _KEYS:
            near = get_close_matches(str(key), _KEYS, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(_KEYS)}"
            raise ConfigError("RQUEUE", f"there is no key {shown(key)}: {hint}")
    own = {_SETTINGS[key]: value for key, value in given.items() if key in _SETTINGS}
    try:
        settings = Settings.load(**own)
    except ConfigError as error:
        raise ConfigError(f"RQUEUE[{_key(error.setting)!r}]", error.problem) from None
    modules = given.get("modules", DEFAULT_MODULES)
    expect("RQUEUE['modules']", modules, (list, tuple), "a list of modules' names")
    queues = _queues(given.get("queues", ()))
    alias = _alias(given.get("on_commit", True))
    return Conf(settings, alias, queues, tuple(modules), _outbox(given.get("outbox", False)))


def _key(setting: str) -> str:
    return next((key for key, name in _SETTINGS.items() if name == setting), setting)


def _alias(on_commit: object) -> str:
    if isinstance(on_commit, bool):
        return DEFAULT_DB_ALIAS if on_commit else ""
    if isinstance(on_commit, str) and on_commit in django_settings.DATABASES:
        return on_commit
    known = ", ".join(repr(alias) for alias in django_settings.DATABASES)
    raise ConfigError(
        "RQUEUE['on_commit']",
        f"{shown(on_commit)} is neither True nor False nor a database of DATABASES ({known})",
    )


def _outbox(wanted: object) -> bool:
    expect("RQUEUE['outbox']", wanted, bool, "True or False")
    if wanted and OUTBOX not in django_settings.INSTALLED_APPS:
        hint = f"add '{OUTBOX}' to INSTALLED_APPS, and run 'manage.py migrate'"
        raise ConfigError("RQUEUE['outbox']", f"the project has no outbox: {hint}")
    return bool(wanted)


def _queues(names: Any) -> tuple[str, ...]:
    expect("RQUEUE['queues']", names, (list, tuple), "a list of queues' names")
    try:
        return tuple(check_queue(name) for name in names)
    except InvalidName as error:
        raise ConfigError("RQUEUE['queues']", str(error)) from None


_conf: Conf | None = None
_problem: ConfigError | None = None


def configure() -> None:
    """Read RQUEUE and configure the process's queues by it. What is wrong with it is raised by the
    first use, and said by `manage.py check`."""
    global _conf, _problem
    try:
        _conf, _problem = read(), None
    except ConfigError as error:
        _conf, _problem = None, error
        return
    configure_queues(settings=_conf.settings)


def conf() -> Conf:
    """What RQUEUE said when it was read last. Raises ConfigError."""
    if _conf is None:
        raise _problem or ConfigError(
            "RQUEUE", "the app 'rqueue.contrib.django' is not ready: call django.setup() first"
        )
    return _conf


def environ() -> dict[str, str]:
    """RQUEUE as variables, for a program that is to use the same queues: a pool, the command line.
    Raises ConfigError."""
    given = getattr(django_settings, "RQUEUE", {})
    return environ_of(conf().settings, [_SETTINGS.get(key, "") for key in given])


def tasks_installed() -> bool:
    """Whether there are Django's tasks: Django 6, or the backport among the apps."""
    return find_spec("django.tasks") is not None or apps.is_installed("django_tasks")
