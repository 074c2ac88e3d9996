"""How far searches at random go: `RQUEUE_TEST_PROFILE`.

Not set: as far as `make test` has time for. `full`: further, as `make test-all` does. `thorough`:
for an hour, and elsewhere each time. `brief`: what may be tried between two edits.
"""

from __future__ import annotations

import os

NAME = os.environ.get("RQUEUE_TEST_PROFILE", "")
THOROUGH = NAME == "thorough"


def examples(usual: int, full: int, *, thorough: int = 0, brief: int = 0) -> int:
    """How many examples a search tries; where nothing is said for `thorough` it is as `full`, for
    `brief` as usual."""
    return {"full": full, "thorough": thorough or full, "brief": brief or usual}.get(NAME, usual)
