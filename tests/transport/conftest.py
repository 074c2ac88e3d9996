from tests.workers.conftest import make_pool  # noqa: F401
