"""The names that people import, and what importing them loads."""

import subprocess
import sys

import pytest

import confide as cf


def test_every_public_name_is_there() -> None:
    for name in cf.__all__:
        assert getattr(cf, name) is not None
    assert dir(cf) == sorted([*cf.__all__, "__version__"])


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Gausian'"):
        _ = cf.Gausian  # pyright: ignore


def test_the_two_lines_of_the_readme() -> None:
    answer = cf.epsilon(cf.Gaussian(4.0), rate=0.01, steps=10_000, delta=1e-5)
    assert answer.epsilon == pytest.approx(0.946867, rel=1e-3)
    found = cf.calibrate("laplace", epsilon=2, delta=1e-5, rate=0.01, steps=1000)
    assert 1.998 <= found.answer.epsilon <= 2


@pytest.mark.parametrize(
    ("stage", "event"),
    [
        (cf.Gaussian(2.0), ("gaussian", 2.0)),
        (cf.Laplace(2.0), ("laplace", 2.0)),
        (cf.Staircase(0.5, 1.0), ("staircase", 2.0)),
    ],
)
def test_a_stage_is_a_noise_at_sensitivity_one(stage: object, event: tuple[str, float]) -> None:
    name, multiplier = event
    one = cf.epsilon(stage, steps=5, delta=1e-5)  # pyright: ignore
    other = cf.epsilon(name, multiplier=multiplier, steps=5, delta=1e-5)
    assert one.epsilon == pytest.approx(other.epsilon, rel=1e-9)


def test_a_staircase_narrower_than_its_sensitivity_is_refused() -> None:
    for stage in (cf.Staircase(0.5, 0.5), cf.RadialStaircase(0.5, 0.5)):
        with pytest.raises(ValueError, match=r"delta = 0\.5, allowed is at least 1"):
            cf.epsilon(stage, delta=1e-5)


def test_importing_confide_loads_nothing_heavy() -> None:
    code = (
        "import sys, confide; heavy = {'torch', 'numpy', 'scipy', 'dp_accounting'}; "
        "assert not heavy & set(sys.modules); confide.epsilon; confide.Ledger; "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
