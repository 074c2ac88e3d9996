from pathlib import Path

SECRET_KEY = "an example"
DEBUG = True
ROOT_URLCONF = "shop.urls"
INSTALLED_APPS = ["rqueue.contrib.django", "shop"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": Path(__file__).with_name("shop.sqlite3"),
    }
}

RQUEUE = {"queues": ["mail"]}  # in production also "url": "redis://..."
