"""What the server can look at besides what was released: its own records, in no client's hands.

Validation records judge released models; public ones may also be trained on. Neither is protected
by any statement, and neither costs anything, because no client's data is looked at.
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from confide.engine.client import Workshop
from confide.engine.trainers import EVALUATED_AT_ONCE, Recipe, one_thread
from confide.randomness import Stream


class ServersRecords:
    """The server's own records, behind a workshop that is made when it is first needed."""

    def __init__(self, recipe: Recipe) -> None:
        """Nothing is computed yet."""
        self._recipe = recipe
        self.federation = recipe.federation

    @cached_property
    def _shop(self) -> Workshop:
        return self._recipe.workshop()

    def loss(self, model: Tensor) -> float:
        """The mean loss on the validation records."""
        held = torch.from_numpy(self.federation.validation)
        if not len(held):
            raise ValueError(
                "run: validation = 0, but the method follows the loss on the server's validation "
                "records; allowed is a share such as validation = 0.02."
            )
        data, model, total = self.federation.data, model.cpu(), 0.0
        with one_thread():
            for part in held.split(EVALUATED_AT_ONCE):
                x = data.x_train[part].to(model.dtype)
                losses = self._shop.gradient.losses(model, x, data.y_train[part])
                total += float(losses.double().sum())
        return total / len(held)

    def gradient(self, model: Tensor, stream: Stream, most: int) -> Tensor:
        """The mean gradient on at most this many of the public records, drawn anew."""
        held = self.federation.public
        if not len(held):
            raise ValueError(
                "run: public = 0, but the method trains on public records at the server; allowed "
                "is a share such as public = 0.02."
            )
        self._shop.gradient.seed_dropout(int(stream.uint64(1)[0]) >> 1)
        drawn = held if len(held) <= most else held[stream.choose(len(held), most)]
        chosen, data = torch.from_numpy(drawn), self.federation.data
        with one_thread():
            x = data.x_train[chosen].to(model.dtype)
            total = self._shop.gradient.total(model.cpu(), x, data.y_train[chosen])
        return (total / len(drawn)).to(model.device)
