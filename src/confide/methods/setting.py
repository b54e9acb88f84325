"""The experiment in which a paper introduces its method: the defaults of `confide plan`."""

from __future__ import annotations

from dataclasses import dataclass

from confide.cohorts import whole
from confide.engine.flat import Flat
from confide.engine.rounds import Sizes
from confide.models import MODELS, build

SHAPES: dict[str, tuple[tuple[int, ...], int]] = {
    "mnist": ((1, 28, 28), 10),
    "emnist": ((1, 28, 28), 62),
    "cifar10": ((3, 32, 32), 10),
    "cifar100": ((3, 32, 32), 100),
}
"""One record's shape and the number of classes; other data have those of the model's example."""


@dataclass(frozen=True)
class Setting:
    """How many clients with how many records, on which data, with which model."""

    clients: int
    data: str
    model: str
    records: int = 600

    @property
    def sizes(self) -> Sizes:
        """The public numbers of a federation like this one, without any data."""
        shape, outputs = SHAPES.get(self.data, MODELS[self.model].example)
        layers = Flat(build(self.model, shape, outputs, 0)).layers
        return Sizes(self.clients, self.records, layers)


def wholes(method: object, *fields: str) -> None:
    """Refuse a method whose counts are not whole numbers of at least 1."""
    for field in fields:
        whole(type(method).__name__, field, getattr(method, field))
