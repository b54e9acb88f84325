import pytest
import torch
from torch.nn import functional

from confide.losses import LOSSES

OUTPUTS = torch.tensor([[2.0, -1.0, 0.5], [0.0, 0.0, 0.0], [-3.0, 1.0, 4.0]])
LABELS = torch.tensor([0, 1, 1])


def test_cross_entropy_is_minus_the_log_probability():
    expected = -torch.log_softmax(OUTPUTS, 1)[range(3), LABELS]
    torch.testing.assert_close(LOSSES["cross-entropy"](OUTPUTS, LABELS), expected)


def test_hinge_is_torch_s_margin_of_the_worst_rival():
    assert LOSSES["hinge"](OUTPUTS, LABELS).tolist() == [0.0, 1.0, 4.0]


def test_hinge_of_two_classes_is_the_usual_one():
    scores = torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
    y = torch.arange(50) % 2
    margin = (scores[:, 1] - scores[:, 0]) * (2 * y - 1)
    torch.testing.assert_close(LOSSES["hinge"](scores, y), functional.relu(1 - margin))


def test_squared_is_averaged_over_the_targets():
    y = torch.zeros(3, 3)
    torch.testing.assert_close(LOSSES["squared"](OUTPUTS, y), (OUTPUTS**2).mean(1))


@pytest.mark.parametrize("name", LOSSES)
def test_one_record_under_vmap_is_one_row_of_the_batch(name):
    loss = LOSSES[name]
    y = torch.ones(3, 3) if name == "squared" else LABELS

    def single(outputs, target):
        return loss(outputs[None], target[None])[0]

    gradients = torch.func.vmap(torch.func.grad(single))(OUTPUTS, y)
    whole = OUTPUTS.clone().requires_grad_()
    loss(whole, y).sum().backward()
    torch.testing.assert_close(gradients, whole.grad)
