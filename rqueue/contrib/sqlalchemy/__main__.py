"""`python -m rqueue.contrib.sqlalchemy`: the relay, and what an operator asks of the outbox."""

from rqueue.contrib.sqlalchemy.command import main

main(prog_name="python -m rqueue.contrib.sqlalchemy")
