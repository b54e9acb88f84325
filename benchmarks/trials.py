"""What a study of a paper's methods is made of, and how its trials are run.

A `Trial` is one method at one setting. An `Ordering` is something that a paper claims: this trial
beats that one (judging.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any

from confide.data import federate, load
from confide.data.dataset import Dataset
from confide.engine.running import Run, run
from confide.engine.spending import Budget
from confide.methods.making import make

HELD_BACK = 10_000
SEARCH_SEED = 1000
Figures = dict[str, Any]
Values = Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Trial:
    """One method at one setting, trained with every seed.

    `budget` sets the noise; `keep_noise`: the budget ends the run instead. `grid`: the values of
    each setting that a search tries. `accelerated`: on a GPU where there is one.
    """

    name: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    data: str = "mnist"
    clients: int = 100
    partition: Mapping[str, Any] | None = None
    model: str | None = None
    budget: Budget | None = None
    keep_noise: bool = False
    delta: float | None = None
    validation: float = 0.0
    public: float = 0.0
    note: str = ""
    grid: Values = field(default_factory=dict[str, tuple[Any, ...]])
    accelerated: bool = False


@dataclass(frozen=True)
class Ordering:
    """A claim of the paper: `better` beats `worse` at equal statements about `row`."""

    claim: str
    better: str
    worse: str
    row: tuple[str, str] = ("record", "server")


@dataclass(frozen=True)
class Study:
    """All trials of a paper's methods, and the orderings that it claims.

    Every trial is run with `seeds`; one that stands in an ordering with the `further` ones too.
    `like`: the trial whose search is for those without a grid as well. `left`: why trials have no
    runs, where some have none.
    """

    paper: str
    heading: str
    trials: Sequence[Trial]
    orderings: Sequence[Ordering] = ()
    seeds: Sequence[int] = (3, 4, 5)
    further: Sequence[int] = ()
    note: str = ""
    like: str = ""
    left: str = ""

    def __post_init__(self) -> None:
        """Every name once, and orderings of trials that exist."""
        names = [trial.name for trial in self.trials]
        if len(set(names)) < len(names):
            raise ValueError(f"Study {self.paper}: a trial's name stands twice in {names}.")
        if self.like and self.like not in names:
            raise ValueError(f"Study {self.paper}: like = {self.like!r} is no trial.")
        for ordering in self.orderings:
            for name in (ordering.better, ordering.worse):
                if name not in names:
                    raise ValueError(
                        f"Study {self.paper}: no trial {name!r}; there are {', '.join(names)}."
                    )


@cache
def known(name: str) -> Dataset:
    """A data set, read once in a process."""
    return load(name)


def trained(
    trial: Trial,
    seed: int,
    device: str = "auto",
    workers: int | None = None,
    searching: bool = False,
) -> Figures:
    """One run's figures; held-out records are looked at once, after the last round.

    With `searching` the test records are not looked at: held-back training records stand in.
    """
    method: Any = make(trial.method, trial.settings)
    data = known(trial.data)
    federation = federate(
        held_back(data) if searching else data, trial.clients, trial.partition, seed,
        validation=trial.validation, public=trial.public,
    )  # fmt: skip
    done = run(
        method, federation, model=trial.model, seed=seed, budget=trial.budget,
        calibrate=not trial.keep_noise, delta=trial.delta, device=device, workers=workers,
        evaluate_every=10**9,
    )  # fmt: skip
    return figures(done)


def candidates(values: Values) -> Iterator[dict[str, Any]]:
    """One dictionary of fields for each combination."""
    for combination in itertools.product(*values.values()):
        yield dict(zip(values, combination, strict=True))


def held_back(data: Dataset, most: int = HELD_BACK) -> Dataset:
    """The last training records, a fifth at most, in the place of the test records."""
    records = min(most, len(data.x_train) // 5)
    return replace(
        data,
        x_train=data.x_train[:-records],
        y_train=data.y_train[:-records],
        x_test=data.x_train[-records:],
        y_test=data.y_train[-records:],
        columns={},
    )


def figures(done: Run) -> Figures:
    """What a run reached, what it gave away, and what was published about it."""
    last = done.metrics[-1]
    settings: Any = done.method
    return {
        "seed": done.seed,
        "score": last.get("accuracy", last.get("error")),
        "metric": "accuracy" if "accuracy" in last else "error",
        "loss": done.loss,
        "rounds": done.rounds,
        "seconds": done.seconds,
        "examples_per_second": done.examples_per_second,
        "stopped": done.stopped,
        "strategy": done.strategy,
        "settings": asdict(settings),
        "proved": [
            {"row": f"{c.unit}/{c.observer}/{c.of}", "epsilon": c.epsilon, "delta": c.delta,
             "relation": c.relation, "by": c.accountant, "group": c.group}
            for c in done.statement.cells
            if c.status == "proved"
        ],
        "published": None if done.published is None else done.published.row(),
    }  # fmt: skip
