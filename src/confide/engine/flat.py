"""`Flat`: a module whose trainable parameters are views of one vector.

Uploads, noise and clipping see one vector; layers see their parameters, without a copy between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from math import prod

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

DTYPES = (torch.float32, torch.float64)


class Flat:
    """A copy of a module with its parameters in one vector; `lengths` are theirs, in order.

    Four-dimensional weights lie channels-last (O, H, W, I) in the vector, as the fast convolutions
    want them. A parameter that two layers share has one place. Frozen parameters and constant
    buffers stay outside: they are no part of what is trained, clipped or noised.
    """

    def __init__(
        self,
        module: nn.Module,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> None:
        """Copy the module, refuse what cannot be trained privately, and lay it out."""
        if dtype not in DTYPES:
            raise ValueError(f"Flat: dtype = {dtype}, allowed are torch.float32 and torch.float64.")
        refuse(module)
        self.module = deepcopy(module).to(device=device, dtype=dtype)
        self._parameters = [p for p in self.module.parameters() if p.requires_grad]
        self._shapes = [tuple(p.shape) for p in self._parameters]
        self.lengths = tuple(prod(shape) for shape in self._shapes)
        self.dim = sum(self.lengths)
        places = {id(p): i for i, p in enumerate(self._parameters)}
        everyone = self.module.named_parameters(remove_duplicate=False)
        self._places = {name: places[id(p)] for name, p in everyone if id(p) in places}
        self._buffers = [(b, b._version) for b in self.module.buffers()]
        self.vector = self.join(self._parameters)
        self._at: Tensor | None = None
        self.at(self.vector)

    @property
    def layers(self) -> tuple[int, ...]:
        """The lengths of the layers in the vector's order: a weight and its bias are one."""
        owner: dict[int, nn.Module] = {}
        for part in self.module.modules():
            for p in part.parameters(recurse=False):
                owner.setdefault(id(p), part)
        owners = [owner[id(p)] for p in self._parameters]
        out: list[int] = []
        for i, length in enumerate(self.lengths):
            if i and owners[i] is owners[i - 1]:
                out[-1] += length
            else:
                out.append(length)
        return tuple(out)

    def load(self, w: Tensor) -> None:
        """Copy w into the vector of the module."""
        self.vector.copy_(w)
        self.at(self.vector)

    def at(self, w: Tensor, *, train: bool = True) -> nn.Module:
        """Let the module's parameters be views of w itself, without a copy."""
        if self._at is not w:
            for parameter, view in zip(self._parameters, self.split(w), strict=True):
                parameter.data = view
            self._at = w
        if self.module.training != train:
            self.module.train(train)
        return self.module

    @property
    def parameters(self) -> list[nn.Parameter]:
        """The trainable parameters in the vector's order, each once."""
        return self._parameters

    def split(self, w: Tensor) -> list[Tensor]:
        """The parameters as views of w, in order."""
        if w.shape != (self.dim,) or w.dtype != self._parameters[0].dtype:
            raise ValueError(
                f"Flat: the vector has shape {tuple(w.shape)} and type {w.dtype}, allowed is "
                f"({self.dim},) and {self._parameters[0].dtype}."
            )
        parts = torch.split(w.detach(), list(self.lengths))
        return [shaped(part, shape) for part, shape in zip(parts, self._shapes, strict=True)]

    def join(self, tensors: Sequence[Tensor]) -> Tensor:
        """One new vector from tensors shaped like the parameters; the inverse of `split`."""
        return torch.cat([raveled(t.detach()) for t in tensors])

    def join_rows(self, tensors: Sequence[Tensor]) -> Tensor:
        """One vector for each entry of a leading dimension that all tensors share."""
        return torch.cat([raveled_rows(t.detach()) for t in tensors], 1)

    def unique(self, views: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """One name for each place: shared parameters under their first name, in order."""
        first: dict[int, str] = {}
        for name, place in self._places.items():
            first.setdefault(place, name)
        return {first[place]: views[first[place]] for place in sorted(first)}

    def views(self, w: Tensor) -> dict[str, Tensor]:
        """The parameters as views of w by name, for torch.func.functional_call."""
        parts = self.split(w)
        return {name: parts[place] for name, place in self._places.items()}

    def state_dict(self, w: Tensor) -> dict[str, Tensor]:
        """Everything in the ordinary contiguous layout, for files."""
        self.check_buffers()
        state: dict[str, Tensor] = {**self.module.state_dict(), **self.views(w)}
        return {
            name: value.detach().clone(memory_format=torch.contiguous_format)
            for name, value in state.items()
        }

    def gather(self, state: Mapping[str, Tensor]) -> Tensor:
        """The vector of a state dict; the inverse of `state_dict`."""
        missing = [name for name in self._places if name not in state]
        if missing:
            raise ValueError(f"Flat: the state has no {missing[0]!r}, which the module trains.")
        w = torch.empty_like(self.vector)
        for name, view in self.views(w).items():
            if state[name].shape != view.shape:
                raise ValueError(
                    f"Flat: {name} has shape {tuple(state[name].shape)}, "
                    f"allowed is {tuple(view.shape)}."
                )
            view.copy_(state[name])
        return w

    def check_buffers(self) -> None:
        """Refuse buffers that have changed: they would leave the client without noise."""
        now = list(self.module.buffers())
        same = len(now) == len(self._buffers) and all(
            b is old and b._version == version
            for b, (old, version) in zip(now, self._buffers, strict=False)
        )
        if not same:
            raise ValueError(
                "Flat: a buffer of the model has changed in training; it would leave the client "
                "without noise. Keep such state out of the model."
            )

    def __reduce__(self) -> tuple[type[Flat], tuple[nn.Module, torch.dtype]]:
        """Travel as the module alone: a pickle would not keep the views together."""
        return Flat, (self.module, self.vector.dtype)


def shaped(part: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A piece of the vector as a parameter of this shape."""
    if len(shape) != 4:
        return part.view(shape)
    outputs, inputs, height, width = shape
    return part.view(outputs, height, width, inputs).permute(0, 3, 1, 2)


def raveled(parameter: Tensor) -> Tensor:
    """A parameter as a piece of the vector."""
    return (parameter.permute(0, 2, 3, 1) if parameter.dim() == 4 else parameter).reshape(-1)


def raveled_rows(parameters: Tensor) -> Tensor:
    """The same with a leading dimension of examples."""
    moved = parameters.permute(0, 1, 3, 4, 2) if parameters.dim() == 5 else parameters
    return moved.reshape(len(parameters), -1)


def refuse(module: nn.Module) -> None:
    """Refuse modules whose state is not all in trainable parameters."""
    for name, parameter in module.named_parameters():
        if is_lazy(parameter):
            raise ValueError(f"Flat: {name} has no shape yet; run the model once before training.")
        if parameter.requires_grad and not parameter.is_floating_point():
            raise ValueError(f"Flat: {name} has type {parameter.dtype}, allowed are real floats.")
    if not any(p.requires_grad and p.numel() for p in module.parameters()):
        raise ValueError("Flat: the model has no trainable parameters; there is nothing to learn.")
    for kind, name in floating_buffers(module):
        raise ValueError(
            f"Flat: buffer {name} of {kind} is floating point and would leave the client without "
            "noise. For batch normalisation use `--set model.norm=group`; keep a constant as a "
            "parameter with requires_grad=False."
        )


def floating_buffers(module: nn.Module) -> Iterator[tuple[str, str]]:
    """The kind and name of every buffer that training could move."""
    for path, part in module.named_modules():
        for name, buffer in part.named_buffers(recurse=False):
            if buffer.is_floating_point() or buffer.is_complex():
                yield type(part).__name__, f"{path}.{name}".lstrip(".")
