"""`python -m rqueue` does what `rqueue` does."""


def main() -> None:
    """Run the command line."""
    from rqueue.cli.root import main

    main()


if __name__ == "__main__":
    main()
