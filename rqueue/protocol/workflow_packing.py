"""From a workflow to the jobs that are stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rqueue.protocol.commands.enqueue import BATCH, Put
from rqueue.protocol.job_packer import JobPacker, as_put
from rqueue.tasks.workflow import Step

__all__ = ["packed_steps"]


def packed_steps(packer: JobPacker, steps: Iterable[Step]) -> Iterator[list[Put]]:
    """The jobs of a workflow, signed, in batches for one step each. Raises NotEncodable."""
    batch: list[Put] = []
    for request, waits, counts in steps:
        id_, body, _, options = packer.pack(request)
        put = as_put(id_, body, options)
        put = put._replace(waits="" if waits is None else waits.text, counts=counts)
        batch.append(put)
        if len(batch) == BATCH:
            yield list(packer.signed_puts(batch))
            batch = []
    if batch:
        yield list(packer.signed_puts(batch))
