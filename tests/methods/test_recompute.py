"""The mathematics of every method beside the same algorithm done naively, example by example.

The engine runs the method from the outside, in double precision; the naive algorithm shares
nothing with it but the recorded draws.
"""

from typing import Any

import numpy as np
import pytest
import torch

from confide.engine.running import run
from confide.methods import CATALOGUE
from methods.cases import CASES
from methods.world import SEED, Case, Vector, network


def model_after(method: Any, case: Case) -> Vector:
    """What the engine makes of the method."""
    done = run(
        method,
        case.world.federation,
        model=network(),
        seed=SEED,
        dtype="float64",
        workers=1,
        device="cpu",
        evaluate_every=case.rounds,
    )
    assert done.rounds == case.rounds
    parts = [v.numpy().ravel() for v in done.parameters.values()]
    return np.concatenate(parts)


def test_every_method_has_a_case_and_every_case_a_method() -> None:
    assert sorted(CATALOGUE) == sorted(CASES)


@pytest.mark.parametrize("name", sorted(CASES))
def test_one_method_beside_the_naive_algorithm(name: str) -> None:
    case = CASES[name]
    method = CATALOGUE[name].load()(**case.settings)
    ours, theirs = model_after(method, case), case.naive(case.world, method)
    moved = np.abs(theirs - case.world.start()).max()
    assert moved > 1e-2, "the naive algorithm did next to nothing"
    # Clips keep half a millionth below C; nothing else differs by more than rounding.
    assert np.abs(ours - theirs).max() < 1e-6


VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("fed-cdp-c", {"batches": "fixed"}),
    ("fed-cdp-decay-c", {"batches": "fixed"}),
    ("fed-sdp", {"noise": "client"}),
    ("fed-sdp-c", {"noise": "client"}),
    ("dssgd", {"select": "random"}),
    ("dssgd", {"select": "random", "tau": 0.05}),
    *(("fed-pruned", {"privacy": p, "C": 0.5}) for p in ("fed-sdp", "fed-cdp")),
    ("fed-pruned", {"privacy": "fed-cdp-decay", "C": 0.6, "C_last": 0.2}),
]


@pytest.mark.parametrize(("name", "changed"), VARIANTS)
def test_other_values_of_a_choice_beside_the_naive_algorithm(
    name: str, changed: dict[str, Any]
) -> None:
    case = CASES[name]
    method = CATALOGUE[name].load()(**{**case.settings, **changed})
    ours, theirs = model_after(method, case), case.naive(case.world, method)
    usual = case.naive(case.world, CATALOGUE[name].load()(**case.settings))
    assert np.abs(theirs - usual).max() > 1e-3, "the choice made no difference"
    assert np.abs(ours - theirs).max() < 1e-6


@pytest.mark.parametrize("name", sorted(CASES))
def test_with_noise_clip_and_device_off_it_is_federated_averaging(name: str) -> None:
    case = CASES[name]
    if case.plain is None:
        assert case.differs, f"{name}: say why it cannot be federated averaging"
        return
    assert case.fedavg is not None
    method = CATALOGUE[name].load()(**{**case.settings, **case.plain})
    plain = CATALOGUE["fedavg"].load()(**case.fedavg)
    assert type(method) is not type(plain) or name == "fedavg"
    ours, theirs = model_after(method, case), model_after(plain, case)
    assert np.abs(theirs - case.world.start()).max() > 1e-2
    assert np.abs(ours - theirs).max() < 1e-12


def test_the_naive_gradient_is_that_of_autograd() -> None:
    world = next(iter(CASES.values())).world
    module = network().double()
    for x, y in world.records(0):
        loss = torch.nn.functional.cross_entropy(
            module(torch.from_numpy(x)[None]), torch.tensor([y])
        )
        found = torch.autograd.grad(loss, list(module.parameters()))
        flat = torch.cat([g.flatten() for g in found]).numpy()
        assert np.allclose(world.gradient(world.start(), x, y), flat, rtol=0, atol=1e-14)
        assert world.loss(world.start(), x, y) == pytest.approx(loss.item(), rel=1e-14)
