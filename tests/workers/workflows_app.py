"""Tasks of small workflows."""

from __future__ import annotations

from rqueue.tasks.decorator import task


@task(name="w.double")
def double(number: int) -> int:
    return 2 * number


@task(name="w.adouble")
async def adouble(number: int) -> int:
    return 2 * number


@task(name="w.listed")
def listed(numbers: list[int]) -> list[int]:
    return numbers


@task(name="w.fails", max_deliveries=1)
def fails(*_: object) -> None:
    raise ValueError("no such page")
