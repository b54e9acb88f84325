"""What happens inside of a client in one round, told beside what it uploads: the `device` tap.

The training itself is that of any other round; nothing of it waits or is drawn otherwise.
"""

from __future__ import annotations

import torch
from torch import Tensor

from confide.engine.client import Job, Streams, Workshop, batches, records, work

INSIDE = "inside "
"""What the names of vectors begin with that a client computes and does not send."""


def overheard(shop: Workshop, job: Job, client: int) -> dict[str, Tensor]:
    """What the client uploads, and beside it what only its own device sees."""
    before: dict[str, Tensor] = {}
    sent = work(shop, job, client, before)
    seen = {f"{INSIDE}local {name}": vector for name, vector in before.items()}
    return {**sent, **seen, f"{INSIDE}examples": first_examples(shop, job, client)}


def first_examples(shop: Workshop, job: Job, client: int) -> Tensor:
    """Each example's gradient of the first batch as it leaves `example`, one row for each.

    The streams are taken from their start once more, so batch, masks and noise are those of the
    step that was made.
    """
    r, streams = job.round.for_client(client), Streams(shop.key, job.t, client)
    held = shop.federation.clients[client]
    first = next(batches(r.local, streams.own("records"), len(held)), held[:0])
    if not len(first):
        return job.model.new_zeros(0, len(job.model))
    shop.gradient.seed_dropout(int(streams.own("dropout").uint64(1)[0]) >> 1)
    x, y = records(shop, held[first], job.model.dtype)
    rows: list[Tensor] = []
    for row in shop.examples.each(job.model, x, y):
        for stage in r.local.example:
            row = stage(row, streams.shared, streams.own("example"))
        rows.append(row)
    return torch.stack(rows)
