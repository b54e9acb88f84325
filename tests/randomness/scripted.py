"""A source of words that returns given ones first, to reach what chance never reaches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confide.randomness import Key


class ScriptedWords:
    """Words from a list, then from a fixed key; counts how many were taken."""

    def __init__(self, *words: int) -> None:
        self._words = list(words)
        self._rest = Key.from_seed(1).stream(0, None, "rest")
        self.taken = 0

    def uint64(self, shape: int) -> NDArray[np.uint64]:
        head, self._words = self._words[:shape], self._words[shape:]
        self.taken += shape
        return np.concatenate([np.array(head, np.uint64), self._rest.uint64(shape - len(head))])
