"""A number that a paper's analysis of learning gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isnan


@dataclass(frozen=True)
class Bound:
    """The value of one printed bound, with its terms where it has several; not about privacy."""

    value: float
    symbol: str
    """What the paper calls the value."""
    source: str
    """The paper and the number of the theorem."""
    formula_text: str
    """The formula as the paper prints it."""
    note: str = ""
    """What a reader must know before trusting the value."""
    terms: Mapping[str, float] = field(default_factory=dict[str, float])

    def __post_init__(self) -> None:
        """Refuse a formula that has no value here."""
        if isnan(self.value):
            raise ValueError(f"{self.source}: it has no value here (NaN).")

    def __str__(self) -> str:
        """One phrase that cannot be taken for a statement."""
        return f"{self.symbol} = {self.value:.6g} ({self.source}; not a privacy statement)"
