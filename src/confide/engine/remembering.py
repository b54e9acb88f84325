"""What clients keep for themselves from round to round."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class Memories(Protocol):
    """Where it is kept: a row for each client, and which rows are filled."""

    @property
    def memory(self) -> Tensor | None:
        """The rows; None where nobody remembers anything."""
        ...

    @property
    def remembered(self) -> Tensor | None:
        """Whose row is filled."""
        ...


def recalled(shop: Memories, client: int) -> Tensor | None:
    """What this client kept, if it has taken part before."""
    if shop.memory is None or shop.remembered is None or not shop.remembered[client]:
        return None
    return shop.memory[client].clone()


def keep(shop: Memories, client: int, vector: Tensor) -> None:
    """Keep this until the client takes part again."""
    if shop.memory is None or shop.remembered is None:
        raise ValueError("Local: remembers = True, but the run holds no memory for its clients.")
    shop.memory[client] = vector
    shop.remembered[client] = True
