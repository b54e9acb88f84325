"""Convolutions as products: what they replace, forwards and backwards, for every client."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

from confide.engine import convolutions
from confide.engine.convolutions import Unfolded

SHAPES = [
    {"kernel_size": 3},
    {"kernel_size": 5, "padding": 2, "bias": False},
    {"kernel_size": (3, 2), "stride": (2, 1), "padding": (0, 1)},
    {"kernel_size": 3, "stride": 2, "dilation": (2, 1), "padding": 1},
    {"kernel_size": 1, "stride": 2},
]


@pytest.mark.parametrize("shape", SHAPES)
def test_products_are_the_convolution_and_its_gradients(shape):
    torch.manual_seed(1)
    plain = nn.Sequential(nn.Conv2d(3, 4, **shape), nn.Tanh(), nn.Conv2d(4, 2, 2)).double()
    x = torch.randn(5, 6, 3, 9, 8, dtype=torch.float64)
    w = {n: torch.randn(5, *p.shape, dtype=p.dtype) for n, p in plain.named_parameters()}

    def total(views, x):
        return functional_call(plain, views, (x,)).square().sum()

    slope = grad(total, argnums=(0, 1))
    outputs, slopes = vmap(total)(w, x), vmap(slope)(w, x)
    convolutions.install(plain)
    assert isinstance(plain[0], Unfolded) and isinstance(plain[2], Unfolded)
    torch.testing.assert_close(vmap(total)(w, x), outputs, rtol=1e-12, atol=1e-12)
    found = vmap(slope)(w, x)
    torch.testing.assert_close(found, slopes, rtol=1e-12, atol=1e-11)


def test_what_has_no_such_form_stays():
    module = nn.Sequential(
        nn.Conv2d(4, 4, 3, groups=2),
        nn.Conv2d(4, 4, 3, padding="same"),
        nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect"),
        nn.Conv1d(4, 4, 3),
    )
    convolutions.install(module)
    assert not any(isinstance(part, Unfolded) for part in module.modules())


def test_evaluation_is_a_convolution():
    layer = nn.Sequential(nn.Conv2d(1, 2, 3)).eval()
    x = torch.randn(2, 1, 5, 5)
    before = layer(x)
    convolutions.install(layer)
    assert torch.equal(layer(x), before)
