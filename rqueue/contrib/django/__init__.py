"""rqueue in Django: an app for INSTALLED_APPS, `manage.py rqueue`, enqueues that wait for commits.

See `docs/django.md`. Needs the extra `rqueue[django]`.
"""
