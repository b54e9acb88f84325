"""What two observers see of a run's canaries, round by round: a few sums for each canary.

The world sees the published vector, the server what the channel shows in the rounds in which the
canary took part. Of each canary only its own coordinate is looked at. The sums go into every
checkpoint, so a run that was killed goes on to the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confide.accounting.relations import Relation
from confide.channels import Each
from confide.cohorts import Spaced
from confide.engine.canaries import Canaries, sign
from confide.engine.rounds import Round

Values = NDArray[np.float64]
Uploads = Iterable[tuple[int, Mapping[str, Tensor]]]
TO_DEVIATION = 1.4826
"""From the median distance of normal values to their deviation."""

FAR, SAME = 30.0, 1e-3
"""No more deviations than this count; lengths that differ by a smaller share are the same."""


@dataclass(frozen=True)
class Odds:
    """What the claim says of one round: how likely a unit is drawn, and how far it then shifts."""

    rate: float
    shift: float  # in deviations of the noise


@dataclass(eq=False)
class Sightings:
    """A recorder: told of every round, it adds up what each observer saw at every coordinate.

    `kept` holds for each observer the plain sum over rounds, the signed one, how many rounds and
    signs there were, and the likelihood ratio that a claim of sampled Gaussian noise suggests.
    """

    canaries: Canaries
    odds: Odds | None
    kept: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    _round: Round | None = None
    _came: list[int] = field(default_factory=list[int])
    _single: dict[int, Tensor] = field(default_factory=dict[int, Tensor])
    _sum: Tensor | None = None

    def __post_init__(self) -> None:
        """Find each client's canaries once."""
        self._of: dict[int, list[int]] = {}
        for canary, owner in enumerate(self.canaries.owners):
            self._of.setdefault(int(owner), []).append(canary)

    def heard(self, r: Round, sent: Uploads) -> Iterator[tuple[int, Mapping[str, Tensor]]]:
        """The uploads of a round on their way to the server."""
        self._round, self._came, self._single, self._sum = r, [], {}, None
        single, name = isinstance(r.channel, Each), main(r)
        for client, vectors in sent:
            self._came.append(client)
            if single and client in self._of:
                self._single[client] = self._at(vectors[name], self._of[client])
            yield client, vectors

    def summed(self, totals: Mapping[str, Tensor]) -> None:
        """What the server adds up: all that it can tell of a client that is hidden among others."""
        r = self._round
        if r is not None and not isinstance(r.channel, Each) and main(r) in totals:
            self._sum = self._at(totals[main(r)])

    def ended(
        self, t: int, r: Round, model: Tensor, sent: Mapping[str, Tensor],
        published: Mapping[str, Tensor],
    ) -> None:  # fmt: skip
        """The round was accepted: `model` and `sent` went out, `published` came of it."""
        before = self._at(model) if main(r) == "model" else torch.zeros(self.canaries.count)
        before = before.double()
        everyone = np.arange(self.canaries.count)
        seen = np.array([c for client in self._came for c in self._of.get(client, [])], np.int64)
        shown = (self._at(published[main(r)]).double() - before).numpy()
        known = seen if isinstance(r.cohort, Spaced) else everyone  # its turns are public
        self._add("world", t, shown[known], known)
        if self.odds is not None:
            ratios = likelihoods(shown * sign(t), self.odds, self.canaries.relation)
            self._tally("world", "likelihood", torch.from_numpy(ratios), everyone)
        if isinstance(r.channel, Each):
            parts = [self._single[client] for client in self._came if client in self._of]
            values = torch.cat(parts) if parts else torch.zeros(0)
            self._add("server", t, (values.double() - before[seen]).numpy(), seen)
        elif self._sum is not None:
            values = self._sum.double() - len(self._came) * before
            self._add("server", t, values.numpy()[seen], seen)

    def _at(self, vector: Tensor, canaries: list[int] | None = None) -> Tensor:
        """The canaries' own coordinates of a vector."""
        places = self.canaries.places if canaries is None else self.canaries.places[canaries]
        return vector[torch.from_numpy(places).to(vector.device)].cpu()

    def _add(self, view: str, t: int, values: Values, canaries: NDArray[np.int64]) -> None:
        seen = torch.from_numpy(values)
        self._tally(view, "plain", seen, canaries)
        self._tally(view, "signed", sign(t) * seen, canaries)
        self._tally(view, "rounds", torch.ones_like(seen), canaries)
        self._tally(view, "signs", sign(t) * torch.ones_like(seen), canaries)

    def _tally(self, view: str, what: str, values: Tensor, canaries: NDArray[np.int64]) -> None:
        nothing = torch.zeros(self.canaries.count, dtype=torch.float64)
        total = self.kept.get(f"{view} {what}", nothing).clone()  # a checkpoint may hold the old
        total[torch.from_numpy(canaries)] += values
        self.kept[f"{view} {what}"] = total


def main(r: Round) -> str:
    """The vector that is made of the local steps: the first that is trained."""
    return next(name for name, upload in r.uploads.items() if upload.data != "test")


def likelihoods(values: Values, odds: Odds, relation: Relation) -> Values:
    """Of each canary: in against out, as the claim would have it of a coordinate's own noise."""
    x, h = standard(values), min(odds.shift, FAR)
    if relation is Relation.REPLACE_ONE:
        return mixed(x, h / 2, odds.rate) - mixed(x, -h / 2, odds.rate)
    return mixed(x, h, odds.rate)


def standard(values: Values) -> Values:
    """In deviations from the centre, as the medians tell both: a few that stand out do not hide.

    What a mask leaves out is no part of the noise. Values that all lie equally far from the centre
    are none at all: there they are as far as anything can be.
    """
    away = values - np.median(values)
    moved = np.abs(away)[away != 0]
    if not len(moved):
        return away
    if np.ptp(moved) < SAME * float(moved.max()):
        return FAR * np.sign(away)
    deviation = float(np.median(np.abs(away))) or float(np.median(moved))
    return np.clip(away / (TO_DEVIATION * deviation), -FAR, FAR)


def mixed(x: Values, shift: float, rate: float) -> Values:
    """The logarithm of a sampled normal density, shifted where drawn, over the unshifted one."""
    drawn = shift * x - shift**2 / 2
    return np.logaddexp(np.log1p(-rate) if rate < 1 else -np.inf, np.log(rate) + drawn)


def scores(kept: Mapping[str, Tensor], view: str) -> dict[str, Any]:
    """What a guesser goes by, larger where a canary is in: fixed functions of what was seen.

    The contrast weighs rounds so that the same value in all of them cancels; it is left out where
    the signs cancel by themselves.
    """
    if f"{view} signed" not in kept:
        return {}
    plain, signed, rounds, signs = (
        kept[f"{view} {what}"].numpy() for what in ("plain", "signed", "rounds", "signs")
    )
    out: dict[str, Any] = {"sum over rounds": signed}
    if np.any(signs) and np.any(rounds > 1):
        out["contrast of rounds"] = signed - signs / np.maximum(rounds, 1) * plain
    if f"{view} likelihood" in kept:
        out["likelihood ratio of the claim"] = kept[f"{view} likelihood"].numpy()
    return out
