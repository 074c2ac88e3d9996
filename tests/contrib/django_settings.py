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
ROOT_URLCONF = "tests.contrib.django_urls"
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
STATIC_URL = "/static/"
ALLOWED_HOSTS = ["*"]
DATABASES = {"default": MEMORY, "other": {**MEMORY}}
BACKPORT = ["django_tasks"] if django.VERSION < (6,) else []
INSTALLED_APPS = [*ADMIN, *BACKPORT, "rqueue.contrib.django", "tests.contrib.django_app"]
MIGRATION_MODULES = {app.rpartition(".")[2]: None for app in ADMIN}  # tables at once
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
