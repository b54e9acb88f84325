"""The papers' models as plain modules, and a user's own from `file.py:name`.

Built from a seed alone, sequential wherever the mathematics allows, and without batch statistics:
those of a batch would leave a client without noise. docs/data.md lists the sizes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from confide.data.settings import check_names, nearest
from confide.losses import LOSSES
from confide.models import networks, own
from confide.models.norms import group_normalised
from confide.models.resnet import resnet18
from confide.randomness import Key

Shape = tuple[int, ...]

__all__ = ["MODELS", "Model", "build"]

IMAGE = "images (channels, height, width)"


DIGIT, COLOUR, GREY64, SERIES = (1, 28, 28), (3, 32, 32), (1, 64, 64), (1, 1, 48)


@dataclass(frozen=True)
class Model:
    """A model of the list; `example` is a shape and a number of outputs that its source has."""

    make: Callable[..., nn.Module]
    what: str
    source: str
    example: tuple[Shape, int]
    takes: str = IMAGE
    loss: str | None = None  # None: the task's own


MODELS = {
    "mlp": Model(
        make=networks.mlp,
        what="dense layers with ReLU; hidden = [32]",
        source="ours: the quick start",
        example=(DIGIT, 10),
        takes="any shape",
    ),
    "mlp256": Model(
        make=networks.mlp256,
        what="one hidden layer of 256",
        source="udp-crd, MNIST",
        example=(DIGIT, 10),
        takes="any shape",
    ),
    "svm": Model(
        make=networks.svm,
        what="linear, multi-class hinge loss",
        source="udp-crd, IPUMS",
        example=((58,), 2),
        takes="any shape",
        loss="hinge",
    ),
    "tabular": Model(
        make=networks.tabular,
        what="two hidden layers; hidden = [64, 32]",
        source="fed-cdp, Adult and cancer; widths ours",
        example=((105,), 2),
        takes="any shape",
    ),
    "cnn1": Model(
        make=networks.cnn1,
        what="one 5x5 convolution of padding 4, pooling, one dense layer",
        source="udp-crd, CIFAR-10; 16 channels and pooling ours",
        example=(COLOUR, 10),
    ),
    "cnn2": Model(
        make=networks.cnn2,
        what="two 5x5 convolutions with pooling, two dense layers",
        source="udp-fl, MNIST; sizes ours",
        example=(DIGIT, 10),
    ),
    "cnn2-flat": Model(
        make=networks.cnn2_flat,
        what="two 5x5 convolutions with pooling, one dense layer",
        source="fed-cdp, images; sizes ours",
        example=(COLOUR, 62),
    ),
    "cnn4": Model(
        make=networks.cnn4,
        what="four 3x3 convolutions with pooling, two dense layers",
        source="udp-fl, Medical MNIST; sizes ours",
        example=(GREY64, 6),
    ),
    "leaf-cnn": Model(
        make=networks.leaf_cnn,
        what="two 5x5 convolutions with pooling, dense 512",
        source="dp-fedsam, EMNIST; 32 and 64 channels from LEAF",
        example=(DIGIT, 62),
    ),
    "simple-cnn": Model(
        make=networks.simple_cnn,
        what="two 3x3 convolutions, one pooling, dense 128; dropout = false leaves dropout out",
        source="pfl-research's CIFAR-10 benchmark",
        example=(COLOUR, 10),
    ),
    "resnet18": Model(
        make=resnet18,
        what="ResNet-18 with GroupNorm, the first layer 3x3 without pooling",
        source="udp-fl and dp-fedsam, CIFAR; groups ours",
        example=(COLOUR, 10),
    ),
    "wind-cnn": Model(
        make=networks.wind_cnn,
        what="two convolutions along time with pooling, two dense layers",
        source="udp-fl, wind; sizes ours",
        example=(SERIES, 48),
        takes="series (1, 1, hours)",
        loss="squared",
    ),
}


def build(
    name: str,
    shape: Shape,
    outputs: int,
    seed: int,
    *,
    norm: str | None = None,
    **settings: Any,
) -> nn.Module:
    """A model by its name, or a module, class or function by `file.py:name`.

    Parameters come from `seed` only, whatever torch's own generator has done before, and leave it
    as it was. `norm="group"` replaces batch normalisation by group normalisation.
    """
    if norm not in (None, "group"):
        raise ValueError(f'Model {name}: norm = {norm!r}, allowed is "group" or nothing.')
    if name not in MODELS and ":" not in name:
        raise ValueError(
            f"Model: name = {name!r} is unknown, allowed are {', '.join(MODELS)} and file.py:name."
            f"{nearest(name, MODELS)}"
        )
    with seeded(seed):
        if name in MODELS:
            make, takes = MODELS[name].make, MODELS[name].takes
            check_names(f"Model {name}", settings, list(inspect.signature(make).parameters)[2:])
        else:
            make, takes = own.factory(own.find(name), name), "what it was written for"
        module = _made(name, takes, lambda: make(shape, outputs, **settings))
        if not isinstance(module, nn.Module):
            raise ValueError(
                f"Model {name}: it gives a {type(module).__name__}, allowed is a torch.nn.Module."
            )
        _check_answer(name, takes, module, shape, outputs)
        if norm == "group":
            # After the first answer: until then, lazy modules do not know their sizes.
            module = group_normalised(module)
            _check_answer(name, takes, module, shape, outputs)
    if name in MODELS and MODELS[name].loss is not None:
        cast(Any, module).loss = MODELS[name].loss
    _check_loss(name, module)
    return module


@contextmanager
def seeded(seed: int) -> Generator[None]:
    """Torch's CPU generator at a state of this seed; afterwards where it was."""
    start = int(Key.from_seed(seed).stream(0, None, "model").integers(1 << 62, 1)[0])
    state = torch.get_rng_state()
    # Not torch.manual_seed: it would seed the accelerators too, and nobody would put them back.
    torch.default_generator.manual_seed(start)
    try:
        yield
    finally:
        torch.set_rng_state(state)


def _made(name: str, takes: str, call: Callable[[], Any]) -> Any:
    """What the call gives; a complaint of torch about sizes becomes one sentence."""
    try:
        return call()
    except networks.WrongSetting as why:
        raise ValueError(f"Model {name}: {why}.") from why
    except Exception as why:
        # A user's module can fail in any way at all.
        first = str(why).strip().split("\n", 1)[0].rstrip(".")[:200]
        raise ValueError(
            f"Model {name}: it cannot take these records ({first or type(why).__name__}), allowed "
            f"are {takes}."
        ) from why


def _check_answer(name: str, takes: str, module: nn.Module, shape: Shape, outputs: int) -> None:
    """Two records through the model must give two rows of `outputs` numbers."""
    training = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        answer: object = _made(name, takes, lambda: module(torch.zeros(2, *shape)))
    for part, was in training.items():
        part.training = was
    if not isinstance(answer, Tensor) or tuple(answer.shape) != (2, outputs):
        gave = tuple(answer.shape) if isinstance(answer, Tensor) else type(answer).__name__
        raise ValueError(
            f"Model {name}: two records of shape {shape} give {gave}, allowed is a tensor of shape "
            f"(2, {outputs})."
        )


def _check_loss(name: str, module: nn.Module) -> None:
    loss = getattr(module, "loss", None)
    if loss is not None and loss not in LOSSES:
        raise ValueError(
            f"Model {name}: loss = {loss!r}, allowed are {', '.join(LOSSES)}."
            f"{nearest(str(loss), LOSSES)}"
        )
