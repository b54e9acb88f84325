"""Runs with correlated noise: interrupted ones go on to the same bits."""

from pathlib import Path

import pytest

from confide.engine.running import run
from confide.methods.dp_bandmf import DPBandMF
from small import federation, mlp

METHOD = DPBandMF(T=9, b=3, C=0.5, sigma=1.5, E=1, B=8, momentum=0.0, decay=0.0, beta=0.5)


class StopAfter:
    """Ask for an end after so many rounds."""

    def __init__(self, rounds: int) -> None:
        self.rounds, self.stopping = rounds, False

    def round_done(self, t: int, rounds: int | None, examples: int, seconds: float) -> None:
        self.stopping = t >= self.rounds

    def evaluated(self, row: object) -> None: ...


def test_a_resumed_run_makes_the_earlier_noises_again(tmp_path: Path) -> None:
    whole = run(METHOD, federation(), model=mlp(), seed=3, workers=1, device="cpu")
    with pytest.raises(KeyboardInterrupt):
        run(
            METHOD, federation(), model=mlp(), seed=3, workers=1, device="cpu",
            out=tmp_path / "run", watch=StopAfter(5),
        )  # fmt: skip
    resumed = run(
        METHOD, federation(), model=mlp(), seed=3, workers=1, device="cpu",
        out=tmp_path / "run", resume=True,
    )  # fmt: skip
    assert resumed.rounds == whole.rounds == 9
    for name, values in whole.parameters.items():
        assert values.numpy().tobytes() == resumed.parameters[name].numpy().tobytes()
    assert whole.participations == 3 == whole.statement.cell("client", "world").participations
