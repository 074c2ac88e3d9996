"""An application that hears of its worker's connection, and says so in a file."""

import os

from rqueue import ConnectionState, task, worker_connection


def note(state: ConnectionState) -> None:
    with open(os.environ["STATES_FILE"], "a") as file:
        file.write(f"{state}\n")


worker_connection.add_listener(note)


@task(name="s.echo")
def echo(value: int) -> int:
    return value
