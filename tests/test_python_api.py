"""The Python words of the contract: `confide.run`, its answer, and a method of one's own."""

from dataclasses import dataclass
from math import inf
from pathlib import Path

import confide as cf
from small import digits


def test_the_four_lines_of_the_readme(tmp_path: Path) -> None:
    method = cf.methods.DPFedSAMC(T=2, q=0.5, C=0.2, sigma=2.0, rho=0.05, E=1)
    done = cf.run(method, data=digits(), clients=8, workers=1)
    assert done.accuracy is not None and 0 <= done.accuracy <= 1
    assert 0 < done.statement.cell("client", "world").epsilon < inf
    page = done.report(tmp_path / "report.html").read_text()
    assert "dp-fedsam-c on mnist" in page
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html"]
    assert str(done).startswith("DPFedSAMC on mnist: accuracy ")


def test_a_budget_in_place_of_a_noise() -> None:
    method = cf.methods.DPFedAvgC(T=2, q=0.5, E=1)
    done = cf.run(method, digits(), clients=8, budget=cf.Budget(2.0, 1e-3), workers=1)
    assert 1.99 <= done.statement.cell("client", "world").epsilon <= 2
    assert done.budget == cf.Budget(2.0, 1e-3)


@dataclass(frozen=True)
class Mine:
    """A person's own method: an upload without noise."""

    T: int = 1

    def round(self, past: cf.Past) -> cf.Round | None:
        """Everybody sends a clipped update."""
        return None if past.t == self.T else cf.Round(cohort=cf.All(), upload=(cf.Clip(1.0),))


def test_a_method_of_ones_own() -> None:
    done = cf.run(Mine(), digits(), clients=8, workers=1)
    assert done.statement.cell("client", "server").epsilon == inf
    assert "nobody is protected from anybody" in str(done)
