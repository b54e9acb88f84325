"""Calculators of the papers' analyses of learning: convergence, error, generalisation.

One file for each paper. Nothing here says anything about privacy: a `Bound` is no number, so no
claim, event or accountant accepts it.
"""

from confide.bounds.value import Bound

__all__ = ["Bound"]
