"""Single uploads at the server: joining models along curves, and passing one of them on."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from confide.aggregates import MeanOfPresent, ModeConnectivity
from confide.channels import Each, Shuffle, Sum
from confide.cohorts import All, Fixed, Poisson
from confide.engine import uploads
from confide.engine.rounds import Local, Round, Sizes, Upload
from confide.engine.running import run
from confide.engine.uploads import bend, check_joining, joined
from confide.local import SGD, Pulled, Scaffold
from confide.randomness import Key, Stream
from confide.stages import PerClient, Shared, Stage
from methods.world import DIM, World, network
from small import Anything

CPU = torch.device("cpu")
MODELS = {"model": Upload()}


def stream(purpose: str = "curve") -> Stream:
    return Key.from_seed(3).stream(0, None, purpose)


def uphill(w: Tensor, coins: Stream, most: int) -> Tensor:
    """The gradient of ‖w‖^2 / 2."""
    return w


def test_a_curve_goes_from_one_model_to_the_other_through_its_bend() -> None:
    w1, theta, w2 = (torch.tensor([v], dtype=torch.float64) for v in (1.0, 5.0, 3.0))
    for curve, half in (("polygon", 5.0), ("bezier", (1 + 2 * 5 + 3) / 4)):
        how = ModeConnectivity(curve=curve)
        for p, value in ((0.0, 1.0), (0.5, half), (1.0, 3.0)):
            point, _ = how.point(p, w1, theta, w2)
            assert float(point) == pytest.approx(value, abs=1e-15)
        for p in (0.1, 0.49, 0.51, 0.8):
            _, slope = how.point(p, w1, theta, w2)
            up, down = (float(how.point(p, w1, theta + h, w2)[0]) for h in (1e-6, -1e-6))
            assert slope == pytest.approx((up - down) / 2e-6, rel=1e-8)


def test_the_bend_goes_where_the_curves_mean_loss_is_least() -> None:
    """For ‖w‖^2 / 2 on the chain the mean over p is least at theta = -(w1 + w2) / 4."""
    w1, w2 = torch.tensor([4.0, 0.0]).double(), torch.tensor([0.0, -2.0]).double()
    found = bend(w1, w2, ModeConnectivity(4000, 0.02), uphill, stream())
    assert found.tolist() == pytest.approx([-1.0, 0.5], abs=0.2)


def test_a_model_without_a_partner_goes_on() -> None:
    how = ModeConnectivity(1, 1e-12)
    models = [torch.tensor([float(v)], dtype=torch.float64) for v in (1, 2, 3, 4, 5)]
    # ((1 + 2) / 2 + (3 + 4) / 2) / 2 = 2.5, and then with 5
    assert float(joined(models, how, uphill, stream())) == pytest.approx(3.75, abs=1e-9)
    assert float(joined(models[:1], how, uphill, stream())) == 1.0


@pytest.mark.parametrize("channel", [Sum(), Shuffle("coordinate")])
def test_what_a_channel_does_not_show_cannot_be_joined(channel: Any) -> None:
    with pytest.raises(TypeError, match="it joins single models"):
        Round(All(), upload=MODELS, channel=channel, aggregate=ModeConnectivity())
    with pytest.raises(TypeError, match="an upload `model`"):
        Round(All(), channel=Each(), aggregate=ModeConnectivity())


def test_what_is_passed_on_must_be_known_and_told() -> None:
    told = Round(All(), upload=MODELS, broadcast=True, passes_on=1)
    for changed in ({"broadcast": False}, {"channel": Shuffle()}, {"upload": ()}):
        with pytest.raises(ValueError, match="passes_on = 1"):
            replace(told, **changed)


def test_bad_curves_get_a_sentence() -> None:
    for changed in ({"steps": 0}, {"B": 0}, {"eta": 0.0}, {"curve": "line"}):
        with pytest.raises(ValueError, match="allowed"):
            ModeConnectivity(**changed)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="lam = -1"):
        Pulled(SGD(), -1.0)
    with pytest.raises(ValueError, match="remembers = False, allowed with Pulled is True"):
        Local(Pulled(Scaffold(), 0.5))


def test_models_that_do_not_fit_the_memory_are_refused_before_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    r = Round(Fixed(10), upload=MODELS, aggregate=ModeConnectivity())
    sizes = Sizes(100, 5, (1000,))
    monkeypatch.setattr(uploads, "free_bytes", lambda _: 3 * 10 * 1000 * 4)
    check_joining(r, sizes, 5, torch.float32, CPU)
    with pytest.raises(ValueError, match="models of all 10 clients"):
        check_joining(r, sizes, 5, torch.float64, CPU)
    with pytest.raises(ValueError, match="models of all 100 clients"):  # a coin may bring everyone
        check_joining(replace(r, cohort=Poisson(0.1)), sizes, 5, torch.float32, CPU)
    check_joining(replace(r, aggregate=MeanOfPresent()), sizes, 0, torch.float64, CPU)
    assert uploads.free_bytes(CPU) != 0


def test_without_public_records_nothing_begins() -> None:
    world = World()
    nobody = replace(world.federation, public=np.empty(0, np.int64))
    method = Anything(Round(All(), upload=MODELS, aggregate=ModeConnectivity()))
    with pytest.raises(ValueError, match="run: public = 0, but mode connectivity"):
        run(method, nobody, model=network(), workers=1)


@dataclass(frozen=True)
class Deaf(Stage):
    """Throws the gradient away and puts noise in its place."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return torch.from_numpy(own.normal((DIM,))).to(x)


@pytest.mark.parametrize("step", [Scaffold(0.1), Pulled(Scaffold(0.1), PerClient((0.5,) * 6))])
@pytest.mark.parametrize("aggregate", [MeanOfPresent(), ModeConnectivity(2)])
def test_memory_curves_and_pulls_see_clients_data_only_through_gradients(
    step: Any, aggregate: Any
) -> None:
    """docs/proofs/memory.md: with gradients that know nothing, nothing else does either."""
    r = Round(
        cohort=Fixed(4),
        local=Local(step, 2, Poisson(0.5), batch=(Deaf(),), remembers=True),
        upload={"model": Upload(), "control": Upload()},
        aggregate=aggregate,
        broadcast=True,
        passes_on=2,
    )
    world = World()
    others = replace(world.data, x_train=world.data.x_train.clone())
    for held in world.federation.clients:  # the public records stay
        others.x_train[torch.from_numpy(held)] *= -3.0
    models = [
        run(Anything(r, 4), data, model=network(), workers=1, dtype="float64").parameters
        for data in (world.federation, replace(world.federation, data=others))
    ]
    for name, value in models[0].items():
        assert torch.equal(value, models[1][name])


def test_what_is_passed_on_is_the_last_model_of_that_client() -> None:
    """Everyone is pulled all the way to it, and moves by nothing else."""
    pulled = Pulled(SGD(1e-9), 1e9)
    r = Round(Fixed(1), Local(pulled), upload=MODELS, broadcast=True, passes_on=4)
    free = Round(Fixed(1), Local(SGD(0.5)), upload=MODELS)

    @dataclass(frozen=True)
    class Once:
        """One free round of everybody, then one of a pulled client."""

        def round(self, past: Any) -> Round | None:
            if past.t == 0:
                return replace(free, cohort=All(), broadcast=True, passes_on=4)
            return None if past.t == 2 else r

    world = World()
    done = run(Once(), world.federation, model=network(), workers=1, dtype="float64", seed=1)
    w = world.start()
    fourth = w - 0.5 * world.mean_gradient(w, world.records(4))
    parts = np.concatenate([v.numpy().ravel() for v in done.parameters.values()])
    assert np.abs(parts - fourth).max() < 1e-7
