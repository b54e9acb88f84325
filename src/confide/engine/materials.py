"""What a run is made of: the federation, the model, and a fingerprint of all that decides it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import nn

from confide.data import federate, load
from confide.data.dataset import Dataset, Federation
from confide.engine.rounds import Method
from confide.models import build


def dealt(
    data: str | Dataset | Federation,
    clients: int | None,
    partition: Mapping[str, Any] | None,
    seed: int,
    validation: float,
    public: float,
    method: Method,
) -> Federation:
    """The federation, by default with as many clients as the method's paper has."""
    if isinstance(data, Federation):
        return data
    loaded = load(data) if isinstance(data, str) else data
    setting: Any = getattr(type(method), "setting", None)
    if clients is None:
        clients = 100 if setting is None else setting.clients
    return federate(loaded, clients, partition, seed, validation=validation, public=public)


def built(
    model: str | nn.Module | None, data: Dataset, seed: int, norm: str | None, method: Method
) -> tuple[nn.Module, str]:
    """The model with its first parameters, and its name."""
    if isinstance(model, nn.Module):
        return model, type(model).__name__
    name = model or default_model(data)
    return build(name, data.shape, data.outputs, seed, norm=norm), name


def loss_of(module: nn.Module, data: Dataset) -> str:
    """The loss that a model names, or the usual one for its targets."""
    return getattr(module, "loss", "cross-entropy" if data.classes else "squared")


def default_model(data: Dataset) -> str:
    """A small model that fits the records."""
    if data.classes is None:
        return "wind-cnn"
    return "mlp" if data.shape == (1, 28, 28) else "cnn2" if len(data.shape) == 3 else "tabular"


def fingerprint_of(
    method: Method, federation: Federation, model: str, seed: int, dtype: str, strategy: str
) -> str:
    """What must be the same for a run to go on."""
    total = hashlib.sha256(federation.data.fingerprint.encode())
    for held in federation.clients:
        total.update(np.ascontiguousarray(held).data)
    total.update(repr((repr(method), federation.partition, model, seed, dtype, strategy)).encode())
    return total.hexdigest()
