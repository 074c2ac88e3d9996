"""From a workflow to the jobs that are stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rqueue.model.confirmation import stricter
from rqueue.protocol.commands.enqueue import BATCH, Put
from rqueue.protocol.job_packer import Batch, JobPacker, as_put
from rqueue.tasks.workflow import Step

__all__ = ["packed_steps"]


def packed_steps(packer: JobPacker, steps: Iterable[Step]) -> Iterator[Batch]:
    """The jobs of a workflow, signed, in batches for one step each. Raises NotEncodable."""
    batch: list[tuple[Put, bool]] = []
    confirm = None
    for request, waits, counts in steps:
        id_, body, own, options = packer.pack(request)
        # all are kept until the last one is made, and orjson's bytes keep a room of 4 KB each
        body = b"%b" % body
        put = as_put(id_, body, options)
        put = put._replace(waits="" if waits is None else waits.text, counts=counts)
        signed = packer.signed(id_, body, put.terms)
        batch.append((put._replace(envelope=signed), own))
        confirm = stricter(confirm, packer.confirmation(options))
        if len(batch) == BATCH:
            yield Batch(batch, confirm)
            batch, confirm = [], None
    if batch:
        yield Batch(batch, confirm)
