"""Who is compared with whom: the neighbouring relation that every number depends on."""

from __future__ import annotations

from enum import StrEnum


class Refused(ValueError):
    """A statement that no proof supports, or an input outside what a proof covers."""


class Relation(StrEnum):
    """Two worlds that must not be told apart; they differ in one unit (record or client)."""

    ADD_REMOVE = "add-remove"
    """The unit is present in one world and absent, with everything it would send, in the other."""

    ZERO_OUT = "zero-out"
    """The unit takes part in both worlds; in one its contribution is the zero vector."""

    REPLACE_ONE = "replace-one"
    """The unit's data are exchanged for any other data; the number of units is public."""

    @property
    def factor(self) -> int:
        """How many clipping norms apart the unit's two contributions can be."""
        return 2 if self is Relation.REPLACE_ONE else 1
