"""Importing the application: what goes wrong is said in its own terms, what looks wrong as well."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import traceback
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from types import ModuleType, TracebackType

from rqueue.model.shard_table import shard_of_name
from rqueue.settings import HOSTED_URL, Settings
from rqueue.tasks.registry import Registry, registry
from rqueue_workers.status_page import NOTE

TRACE_LINES = 40
SHOWN = 8


class AppError(Exception):
    """A module of the application cannot be imported. The first line of the message says why, what
    follows is the traceback, where that tells more."""


def say_where(settings: Settings) -> None:
    """Let the code of the application find the queues of its pool, as its own environment would say
    it: what it enqueues goes there, unless the environment names another server."""
    named = os.environ.get("RQUEUE_URL") or os.environ.get(HOSTED_URL)
    if settings.url and named in (None, "", settings.url):
        os.environ["RQUEUE_URL"] = settings.url
        os.environ.setdefault("RQUEUE_NAMESPACE", settings.namespace)


def import_app(modules: Iterable[str], tasks: Registry = registry) -> list[str]:
    """Import the modules that register tasks, from the current directory too; those whose import
    has brought no task. Raises AppError."""
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    idle = []
    there = {*sys.modules}
    for name in modules:
        before = len(tasks)
        by_another = name in sys.modules and name not in there
        try:
            importlib.import_module(name)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise AppError(_why(name, error)) from error
        if not by_another and len(tasks) == before and not _shares(name, tasks):
            idle.append(name)
    return idle


def doubts(idle: Sequence[str], queues: Sequence[str], tasks: Registry) -> list[str]:
    """What is probably a mistake, one sentence each: a module without tasks, a queue to which none
    of the tasks goes unless a call says so. idle: as `import_app` has found them."""
    found = [f"module '{name}' defines no task, and imports none" for name in idle]
    served = sorted({task.queue for task in tasks})
    for queue in queues:
        # a shard's jobs are those of the queue that is spread
        spread, _ = shard_of_name(queue) or (queue, 0)
        if served and not {queue, spread} & set(served):
            near = get_close_matches(queue, served, 1)
            there = ", ".join(f"'{name}'" for name in served[:5])
            hint = f"did you mean '{near[0]}'?" if near else f"they go to {there}"
            found.append(f"no task goes to queue '{queue}' by default: {hint}")
    return found


def notes(queues: Sequence[str], tasks: Registry) -> list[str]:
    """What may well be meant, a sentence each: the queues of tasks that this pool does not serve.
    Each begins with `NOTE`."""
    others = sorted({task.queue for task in tasks} - {*queues})
    if not others:
        return []
    there = ", ".join(others[:SHOWN]) + (f" and {len(others) - SHOWN} more" * (len(others) > SHOWN))
    return [f"{NOTE}tasks go to queues that this pool does not serve: {there}"]


def _shares(module: str, tasks: Registry) -> bool:
    """Whether a module has tasks among its names, or modules that define some: an earlier one may
    have imported them."""
    names = list(vars(sys.modules[module]).values())
    homes = {task.function.__module__ for task in tasks}
    imported = [value.__name__ for value in names if isinstance(value, ModuleType)]
    return any(task in names for task in tasks) or any(
        f"{home}.".startswith(f"{name}.") for home in homes for name in imported
    )


_FIRST = "; modules stand before the queues: rqueue worker app.tasks mail"


def _why(module: str, error: BaseException) -> str:
    start = f"cannot import the app '{module}'"
    wanted = module.removesuffix(".py").strip("./").replace("/", ".")
    if wanted != module and isinstance(error, ImportError | TypeError | ValueError):
        return f"{start}: name the module, not the file: {wanted}"
    if ":" in module and isinstance(error, ModuleNotFoundError):
        return f"{start}: name the module alone: {module.partition(':')[0]}"
    if isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]:
        hint = _near(error.name, None) or ("" if "." in module else _FIRST)
        return f"cannot import the app: no module '{module}' here or on PYTHONPATH{hint}"
    if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
        package, _, last = str(error.name).rpartition(".")
        return f"{start}: '{package}' has no module '{last}'{_near(last, package)}"
    if isinstance(error, SyntaxError):
        return f"{start}: {type(error).__name__}: {error.msg} ({error.filename}:{error.lineno})"
    return failed(start, error)


def failed(start: str, error: BaseException) -> str:
    """What code of the application raised, and where: a line, and the traceback where that tells
    more."""
    frames = _frames(error.__traceback__)
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    try:
        said = f"{type(error).__name__}: {error}"
    except BaseException as second:  # its text is the user's code as well
        said = f"{type(error).__name__}, whose text raises {type(second).__name__}"
    first = f"{start}: {said}{place}{_of_django(error)}".replace("\n", " ")
    if len(frames) < 2:
        return first
    trace = "".join(traceback.format_list(frames)).rstrip().splitlines()
    return "\n".join([first, *trace[-TRACE_LINES:]])


def _of_django(error: BaseException) -> str:
    """A hint where the application needs Django, and nobody has set it up."""
    if type(error).__name__ not in ("ImproperlyConfigured", "AppRegistryNotReady"):
        return ""
    if type(error).__module__ != "django.core.exceptions":
        return ""
    return "; a Django project's pool is started by manage.py rqueue worker"


def _near(missing: str, package: str | None) -> str:
    """The modules with names most like a missing one, in a package or in the current directory."""
    where = [os.getcwd()] if package is None else getattr(sys.modules.get(package), "__path__", [])
    there = [found.name for found in pkgutil.iter_modules(where)]
    start = "" if package is None else f"{package}."
    near = get_close_matches(missing, there, 1)
    return f"; did you mean '{start}{near[0]}'?" if near else ""


def _frames(trace: TracebackType | None) -> list[traceback.FrameSummary]:
    """The frames of the user's own code and its libraries: none of the import system's, or ours."""
    return [
        frame
        for frame in traceback.extract_tb(trace)
        if not any(part in frame.filename for part in _NOT_THEIRS) and frame.filename != __file__
    ]


_NOT_THEIRS = ("importlib", "/rqueue_workers/worker/", "/contextlib.py", "/asyncio/")
