"""From a workflow to the jobs that are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rqueue.model.confirmation import Confirmation, stricter
from rqueue.protocol.commands.enqueue import BATCH, Put
from rqueue.protocol.job_packer import Batch, JobPacker, as_put
from rqueue.tasks.workflow_steps import Step

__all__ = ["packed_spread", "packed_steps", "signed"]

Packed = tuple[Put, bool, Confirmation | None]


def packed_steps(packer: JobPacker, steps: Iterable[Step]) -> Iterator[Batch]:
    """The jobs of a workflow, not signed yet, in batches for one step each. Raises NotEncodable."""
    return _batches(_packed(packer, step) for step in steps)


def packed_spread(
    packer_of: Callable[[str], JobPacker], steps: Iterable[Step]
) -> Iterator[tuple[str, Batch]]:
    """The jobs of a workflow of several queues, with the queue of each batch: all that wait come
    before those that do not, so that none ends of which another one does not know yet."""
    ready: dict[str, list[Packed]] = {}
    waiting: list[Packed] = []
    queue = ""
    for step in steps:
        its = step.request.queue
        packed = _packed(packer_of(its), step)
        if step.waits is None:
            ready.setdefault(its, []).append(packed)
            continue
        if its != queue:
            yield from ((queue, batch) for batch in _batches(waiting))
            queue, waiting = its, []
        waiting.append(packed)
    yield from ((queue, batch) for batch in _batches(waiting))
    for its, jobs in ready.items():
        yield from ((its, batch) for batch in _batches(jobs))


def signed(packer: JobPacker, batch: Batch) -> Batch:
    """The same batch, signed where its queue's jobs are."""
    puts = packer.signed_puts([put for put, _ in batch.jobs])
    jobs = [(put, own) for put, (_, own) in zip(puts, batch.jobs, strict=True)]
    return batch._replace(jobs=jobs)


def _packed(packer: JobPacker, step: Step) -> Packed:
    id_, body, own, options = packer.pack(step.request)
    # all are kept until the last one is made, and orjson's bytes keep a room of 4 KB each
    body = b"%b" % body
    waits = "" if step.waits is None else step.waits.text
    put = as_put(id_, body, options)._replace(
        waits=waits, counts=step.counts, dependants=step.dependants
    )
    return put, own, packer.confirmation(options)


def _batches(jobs: Iterable[Packed]) -> Iterator[Batch]:
    batch: list[tuple[Put, bool]] = []
    confirm = None
    for put, own, wanted in jobs:
        batch.append((put, own))
        confirm = stricter(confirm, wanted)
        if len(batch) == BATCH:
            yield Batch(batch, confirm)
            batch, confirm = [], None
    if batch:
        yield Batch(batch, confirm)
