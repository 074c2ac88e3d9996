"""Sees to it that there is a PostgreSQL server for the tests of the outbox: `make test` runs this
first. Where none is, and we may (root, on a system with apt), it installs Debian's; else it ends
with the one line that says what to do.
"""

from __future__ import annotations

import sys

from tests.support.postgres import MissingPostgres, find_postgres
from tests.support.system_packages import ensure


def main() -> int:
    why = "the outbox is tested with PostgreSQL, installing it"
    return ensure(find_postgres, MissingPostgres, ["postgresql"], why)


if __name__ == "__main__":
    sys.exit(main())
