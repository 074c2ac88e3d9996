from tests.client.conftest import far, near, proxy  # noqa: F401
from tests.workers.conftest import make_pool  # noqa: F401
