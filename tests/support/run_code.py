"""`python -c` for a `ForkedProgram`: runs the text that is its first argument."""

import sys

if __name__ == "__main__":
    exec(sys.argv.pop(1))
