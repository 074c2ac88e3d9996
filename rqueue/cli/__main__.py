"""`python -m rqueue.cli` does what `rqueue` does."""

from rqueue.cli.root import main

if __name__ == "__main__":
    main()
