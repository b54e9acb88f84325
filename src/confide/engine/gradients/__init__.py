"""Gradients of a batch and of every example in it, by the strategy that suits the model."""

from __future__ import annotations

from difflib import get_close_matches

from torch import nn

from confide.engine.flat import Flat
from confide.engine.gradients.autograd import Autograd
from confide.engine.gradients.bookkeeping import separable
from confide.engine.gradients.byhand import ByHand, chained
from confide.engine.gradients.dropout import install
from confide.engine.gradients.halves import Halves
from confide.engine.gradients.plain import Plain
from confide.engine.gradients.protocol import ExampleGradient, Gradient
from confide.engine.gradients.vmapped import Vmapped
from confide.losses import LOSSES, Loss

__all__ = ["ExampleGradient", "Gradient", "example_gradient_of", "gradient_of"]

WAYS = ("auto", "by hand", "autograd", "plain")
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
EXAMPLE_WAYS = ("auto", "book-keeping", "vmap", "plain")


def gradient_of(model: nn.Module | Flat, loss: Loss | str, strategy: str = "auto") -> Gradient:
    """The way to take a batch's gradient: by hand where every layer is known, else by autograd."""
    flat, function = flat_of(model), loss_of(loss)
    check_strategy(strategy, WAYS)
    if strategy == "plain":
        return Plain(flat, function)
    if strategy == "autograd":
        return Autograd(flat, function)
    install(flat.module)
    if chained(flat):
        return ByHand(flat, function)
    if strategy == "by hand":
        raise ValueError(
            "strategy = 'by hand' needs an nn.Sequential of Linear, Conv2d, GroupNorm, ReLU, "
            "MaxPool2d, Flatten, Unflatten and Dropout; allowed for this model is 'autograd'."
        )
    return Autograd(flat, function)


def example_gradient_of(
    model: nn.Module | Flat, loss: Loss | str, strategy: str = "auto"
) -> ExampleGradient:
    """The way to clip every example's gradient: book-keeping, or vmap for unknown layers."""
    flat, function = flat_of(model), loss_of(loss)
    check_strategy(strategy, EXAMPLE_WAYS)
    if strategy == "plain":
        return Plain(flat, function)
    refuse_batch_norm(flat)
    known = separable(flat)
    if strategy == "book-keeping" and not known:
        raise ValueError(
            "strategy = 'book-keeping' knows Linear, Conv2d, GroupNorm, LayerNorm and Embedding, "
            "and the model trains parameters in other layers; allowed is 'vmap'."
        )
    if strategy == "vmap" or not known:
        return Vmapped(flat, function)
    return Halves(flat, function)


def flat_of(model: nn.Module | Flat) -> Flat:
    """The model as one vector."""
    return model if isinstance(model, Flat) else Flat(model)


def loss_of(loss: Loss | str) -> Loss:
    """The loss by its name."""
    if not isinstance(loss, str):
        return loss
    if loss not in LOSSES:
        near = get_close_matches(loss, LOSSES, 1, 0)
        raise ValueError(
            f"loss = {loss!r}, allowed are {', '.join(LOSSES)}; did you mean {near[0]!r}?"
        )
    return LOSSES[loss]


def check_strategy(strategy: str, allowed: tuple[str, ...]) -> None:
    """Refuse a strategy that does not exist."""
    if strategy not in allowed:
        near = get_close_matches(strategy, allowed, 1, 0)[0]
        raise ValueError(
            f"strategy = {strategy!r}, allowed are {', '.join(allowed)}; did you mean {near!r}?"
        )


def refuse_batch_norm(flat: Flat) -> None:
    """A batch norm mixes the examples of a batch: none of them has a gradient of its own."""
    if any(isinstance(m, BATCH_NORMS) for m in flat.module.modules()):
        raise ValueError(
            "The model normalises over the batch, so that no example has a gradient of its own; "
            "use `--set model.norm=group`."
        )
