"""What a worker of a Django project imports: `rqueue worker rqueue.contrib.django.worker mail` does
what `manage.py rqueue worker mail` does.

Importing it sets Django up by DJANGO_SETTINGS_MODULE and imports the module `tasks` of every
installed app that has one, or those that RQUEUE["modules"] names. Tasks of `django.tasks` are run
as well.
"""

from __future__ import annotations

import django
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured

from rqueue.contrib.django.conf import conf, tasks_installed
from rqueue.contrib.django.connections import around_async_job, around_job
from rqueue.contrib.django.task_modules import import_task_modules
from rqueue.contrib.job_wrappers import around_jobs

__all__ = ["APP"]

APP = "rqueue.contrib.django"

django.setup()
if not apps.is_installed(APP):
    raise ImproperlyConfigured(f"add '{APP}' to INSTALLED_APPS")
around_jobs(around_job, around_async_job)  # first: outside of the application's own middleware
import_task_modules(conf().modules)
if tasks_installed():
    from rqueue.contrib.django.task_runs import register_tasks

    register_tasks()
