"""How long a test waits for what must happen."""

PATIENCE = 60.0
"""Seconds after which what did not happen never will. A test that passes waits for none of it; on a
machine that is busy with other things, what takes some ms alone may take many seconds."""
