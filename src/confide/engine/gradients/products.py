"""The matrix products of dense layers: by oneDNN where torch has it and they are large enough.

torch's own products on a CPU are MKL's, which on other makers' processors run at less than half
of the speed; a convolution has been oneDNN's anyway.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

LARGE = 1 << 19
"""Multiplications from which a product is worth oneDNN's start."""

MANY = 16
"""Terms from which a sum of outer products is faster written down and added than added in place."""


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W' + b, for a batch of vectors or of sequences of them."""
    if by_onednn(x, weight, bias):
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return functional.linear(x, weight, bias)


def add_outer(target: Tensor, g: Tensor, x: Tensor, beta: float, alpha: float) -> None:
    """Make the target `beta` target + `alpha` g' x."""
    g = g.t()
    if len(x) < MANY or not by_onednn(g, x.t(), None):
        target.addmm_(g, x, beta=beta, alpha=alpha)
    elif beta == 0 and alpha == 1:
        target.copy_(linear(g, x.t()))
    else:
        assert beta == 1
        target.add_(linear(g, x.t()), alpha=alpha)


def by_onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether x W' is a product for oneDNN."""
    return (
        x.dtype == torch.float32
        and x.device.type == "cpu"
        and x.numel() * len(weight) >= LARGE
        and onednn()
    )


@cache
def onednn() -> bool:
    """Whether this torch can multiply by oneDNN."""
    multiply: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    if multiply is None or not torch.backends.mkldnn.is_available():
        return False
    eye = torch.eye(4)
    try:
        return torch.equal(multiply(eye, eye, None, "none", [], ""), eye)
    except (RuntimeError, NotImplementedError):
        return False
