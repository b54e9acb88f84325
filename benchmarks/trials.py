"""What a study of a paper's methods is made of, and how it is run and judged.

A `Trial` is one method at one setting. An `Ordering` is something that a paper claims: this trial
beats that one. It is judged by the differences seed by seed, and only where both trials prove the
same; otherwise it says that they cannot be compared.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf
from typing import Any

from confide.data import federate, load
from confide.data.dataset import Dataset
from confide.engine.running import Run, run
from confide.engine.spending import Budget
from confide.methods.making import make
from confide.report.seeds import spread

SAME = 1e-3
"""Two proved epsilons are equal when they differ by no more than this share: what a calibrated
noise may leave of its budget."""

HELD_BACK = 10_000
SEARCH_SEED = 1000
Figures = dict[str, Any]
Values = Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Trial:
    """One method at one setting, trained with every seed.

    `reach` is the mean held-out accuracy that it promises (an error for a regression, from above).
    `budget` sets the noise; `keep_noise`: the budget ends the run instead. `grid`: the values of
    each setting that a search tries.
    """

    name: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    reach: float | None = None
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


@dataclass(frozen=True)
class Ordering:
    """A claim of the paper: `better` beats `worse` at equal statements about `row`."""

    claim: str
    better: str
    worse: str
    row: tuple[str, str] = ("record", "server")


@dataclass(frozen=True)
class Study:
    """All trials of a paper's methods on one machine, and the orderings that it claims."""

    paper: str
    heading: str
    trials: Sequence[Trial]
    orderings: Sequence[Ordering] = ()
    seeds: Sequence[int] = (0, 1, 2)
    note: str = ""

    def __post_init__(self) -> None:
        """Every name once, and orderings of trials that exist."""
        names = [trial.name for trial in self.trials]
        if len(set(names)) < len(names):
            raise ValueError(f"Study {self.paper}: a trial's name stands twice in {names}.")
        for ordering in self.orderings:
            for name in (ordering.better, ordering.worse):
                if name not in names:
                    raise ValueError(
                        f"Study {self.paper}: no trial {name!r}; there are {', '.join(names)}."
                    )


def trained(
    trial: Trial,
    seed: int,
    device: str = "auto",
    workers: int | None = None,
    searching: bool = False,
) -> Figures:
    """One run's figures; held-out records are looked at once, after the last round.

    In a search the test records are not looked at: held-back training records stand in for them.
    """
    method: Any = make(trial.method, trial.settings)
    data = load(trial.data)
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


def tried(trial: Trial, values: Mapping[str, Any], device: str, workers: int | None) -> Figures:
    """One combination of a grid, with a seed that is not reported."""
    changed = replace(trial, settings={**trial.settings, **values})
    found = trained(changed, SEARCH_SEED, device, workers, searching=True)
    told = ("metric", "score", "loss", "rounds", "seconds")
    return {**values, **{name: found[name] for name in told}}


def candidates(values: Values) -> Iterator[dict[str, Any]]:
    """One dictionary of fields for each combination."""
    for combination in itertools.product(*values.values()):
        yield dict(zip(values, combination, strict=True))


def held_back(data: Dataset, records: int = HELD_BACK) -> Dataset:
    """The last training records in the place of the test records."""
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


def summary(trial: Trial, runs: Sequence[Figures]) -> Figures:
    """A trial with its runs, their mean and its interval, and whether that is what was promised."""
    score = spread([one["score"] for one in runs])
    reached = None
    if trial.reach is not None:
        reached = sign(runs[0]["metric"]) * (score.mean - trial.reach) >= 0
    return {
        **asdict(trial),
        "metric": runs[0]["metric"],
        "mean": score.mean,
        "half": score.half,
        "reached": reached,
        "loss_mean": spread([one["loss"] for one in runs]).mean,
        "seconds_mean": spread([one["seconds"] for one in runs]).mean,
        "runs": list(runs),
    }


def judged(ordering: Ordering, trials: Mapping[str, Figures]) -> Figures:
    """The differences of two trials, seed by seed, and what they say about the claim.

    "holds" and "the other way round" mean that the 95 % interval of the difference leaves out 0.
    """
    better, worse = trials[ordering.better], trials[ordering.worse]
    pairs = [(a, b) for a in better["runs"] for b in worse["runs"] if a["seed"] == b["seed"]]
    up = sign(better["metric"])
    gain = spread([up * (a["score"] - b["score"]) for a, b in pairs])
    both = [(proved(a, ordering.row), proved(b, ordering.row)) for a, b in pairs]
    epsilons = [max(pair[side][0] for pair in both) for side in (0, 1)]
    if not all(alike(first, second) for first, second in both):
        verdict = "not comparable: the proved statements differ"
    elif gain.half is None or abs(gain.mean) <= gain.half:
        verdict = "undecided"
    else:
        verdict = "holds" if gain.mean > 0 else "the other way round"
    return {
        **asdict(ordering),
        "gain": gain.mean,
        "half": gain.half,
        "epsilon": ["inf" if epsilon == inf else epsilon for epsilon in epsilons],
        "delta": both[0][0][1],
        "verdict": verdict,
    }


def sign(metric: str) -> float:
    """Whether more is better."""
    return -1.0 if metric == "error" else 1.0


def proved(one: Figures, row: tuple[str, str]) -> tuple[float, float, str]:
    """Epsilon, delta and relation of the update's row, for the worst group of clients."""
    name = "/".join((*row, "update"))
    found = [(c["epsilon"], c["delta"], c["relation"]) for c in one["proved"] if c["row"] == name]
    return max(found, default=(inf, 0.0, ""))


def alike(first: tuple[float, float, str], second: tuple[float, float, str]) -> bool:
    """Whether two statements are finite and equal but for what a search for noise leaves."""
    if first[1:] != second[1:] or inf in (first[0], second[0]):
        return False
    return abs(first[0] - second[0]) <= SAME * max(first[0], second[0])
