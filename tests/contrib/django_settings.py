"""A project of Django, for tests in this process and for pools."""

import django

ADMIN = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
]
MEMORY = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}

SECRET_KEY = "tests"
USE_TZ = True
LOGGING_CONFIG = None
ALLOWED_HOSTS = ["*"]
DATABASES = {"default": MEMORY, "other": {**MEMORY}}
BACKPORT = ["django_tasks"] if django.VERSION < (6,) else []
INSTALLED_APPS = [*ADMIN, *BACKPORT, "rqueue.contrib.django", "tests.contrib.django_app"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
RQUEUE: dict[str, str] = {}
TASKS = {
    "default": {"BACKEND": "rqueue.contrib.django.RqueueBackend", "QUEUES": []},
    "patient": {
        "BACKEND": "rqueue.contrib.django.RqueueBackend",
        "QUEUES": [],
        "OPTIONS": {"retry": {"max_deliveries": 3, "delay": 0}, "keep": 60},
    },
}
