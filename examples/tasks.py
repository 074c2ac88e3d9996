"""A first task. `rqueue worker tasks` in this folder runs its jobs."""

from rqueue import task


@task
def add(a: int, b: int) -> int:
    """Add two numbers, elsewhere."""
    return a + b
