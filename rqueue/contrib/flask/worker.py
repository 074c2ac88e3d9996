"""What a worker of a Flask application imports: `rqueue worker rqueue.contrib.flask.worker mail`
does what `flask rqueue worker mail` does.

Importing it loads the application that FLASK_APP names, or that `flask` finds in the current
folder: a module, or a factory in it. The tasks are those that it imports.
"""

from __future__ import annotations

import os

from flask.cli import ScriptInfo

from rqueue.contrib.flask.extension import NAME
from rqueue.errors import ConfigError

__all__ = ["app"]

app = ScriptInfo(app_import_path=os.environ.get("FLASK_APP")).load_app()
if NAME not in app.extensions:
    raise ConfigError("app", "it has no queues: call Rqueue(app), or init_app(app) in its factory")
