"""Merging releases: exact for Gaussians, a plain list for the rest."""

import pytest

from confide.accounting.events import (
    OPEN,
    ComposedDpEvent,
    GaussianDpEvent,
    PureDpEvent,
    SelfComposedDpEvent,
)
from confide.accounting.sequences import composed, repeated


def test_gaussians_merge_and_never_up() -> None:
    merged = composed([GaussianDpEvent(3.0), GaussianDpEvent(4.0)])
    assert isinstance(merged, GaussianDpEvent)
    assert merged.noise_multiplier == pytest.approx(2.4, rel=1e-14)
    assert merged.noise_multiplier < 2.4
    often = repeated(GaussianDpEvent(3.0), 9)
    assert isinstance(often, GaussianDpEvent)
    assert often.noise_multiplier == pytest.approx(1.0, rel=1e-14)


def test_others_are_listed() -> None:
    pure, gaussian = PureDpEvent(1.0), GaussianDpEvent(1.0)
    assert composed([pure, gaussian]) == ComposedDpEvent([pure, gaussian])
    assert composed([pure]) == pure
    assert repeated(pure, 5) == SelfComposedDpEvent(pure, 5)
    assert repeated(pure, 1) == pure


def test_what_is_open_stays_open() -> None:
    assert composed([GaussianDpEvent(1.0), OPEN]) == OPEN
    assert repeated(OPEN, 3) == OPEN
