"""Pools as programs of their own, beside the consumers of `tests/conformance/conftest.py`."""

from tests.workers.pools import make_pool  # noqa: F401
