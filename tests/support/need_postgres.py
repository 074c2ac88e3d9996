"""Sees to it that there is a PostgreSQL server for the tests of the outbox: `make test` runs this
first. Where none is, and we may (root, on a system with apt), it installs Debian's; else it ends
with the one line that says what to do.
"""

from __future__ import annotations

import subprocess
import sys

from tests.support.postgres import MissingPostgres, find_postgres
from tests.support.system_packages import install, may_install


def main() -> int:
    try:
        find_postgres()
        return 0
    except MissingPostgres as missing:
        if not may_install():
            print(f"make: {missing}", file=sys.stderr)
            return 1
    try:
        install(["postgresql"], "the outbox is tested with PostgreSQL, installing it")
        found = find_postgres()
    except (MissingPostgres, OSError, subprocess.CalledProcessError) as error:
        print(f"make: PostgreSQL could not be installed: {error}", file=sys.stderr)
        return 1
    print(f"make: PostgreSQL is in {found}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
