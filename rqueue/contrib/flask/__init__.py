"""rqueue in Flask: queues from the application's config, jobs in its context, `flask rqueue`.

See `docs/flask.md`. Needs the extra `rqueue[flask]`.
"""

from rqueue.contrib.flask.extension import Rqueue

__all__ = ["Rqueue"]
