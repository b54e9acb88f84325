"""What goes into a ledger: scopes, caps, charges and releases, checked when they are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confide.accounting.relations import Relation

if TYPE_CHECKING:
    from confide.accounting.events import DpEvent

UNITS = ("record", "client")
OBSERVERS = ("device", "server", "world")
UNPROVED = 1e300
"""The spend of a part in which nothing is proved, such as an order at which a Renyi curve is
infinite: above every limit, and small enough that no sum of spends overflows."""


class LedgerError(Exception):
    """A call or a file that the ledger refuses; the message is one sentence for a person."""


class BudgetSpent(LedgerError):
    """A release that does not fit into what is left: it must not happen."""


class LedgerFailed(LedgerError):
    """The disk, or another process, kept the ledger from recording: no release may happen."""


@dataclass(frozen=True)
class Scope:
    """What an account measures: whose privacy, against whom, and in which units of spend.

    The `parts` name the components of its spend vectors, for example ("mu^2",) or one Renyi order
    each. They are alternatives: an account holds as long as ONE of them is within its cap. Two
    bounds that must both hold are two accounts. Without parts an account has no limit.
    """

    unit: str
    observer: str
    relation: str
    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse words outside the vocabulary."""
        _one_of("unit", self.unit, UNITS)
        _one_of("observer", self.observer, OBSERVERS)
        _one_of("relation", self.relation, tuple(Relation))
        _name_each("parts", self.parts)


@dataclass(frozen=True)
class Cap:
    """The limits of an account, one per part of its scope; () for an account without a limit."""

    scope: Scope
    limits: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Refuse limits that are no numbers, or none of which could ever hold."""
        _vector("limits", self.limits, len(self.scope.parts), most=UNPROVED / 10)
        if self.limits and max(self.limits) == 0:
            raise LedgerError(f"limits are {self.limits}; at least one must be above 0")


@dataclass(frozen=True)
class Charge:
    """One event that a release is to each of these accounts, and what all `count` of it cost."""

    accounts: tuple[str, ...]
    scope: Scope
    event: DpEvent
    spend: tuple[float, ...] = ()
    count: int = 1

    def __post_init__(self) -> None:
        """Refuse an empty, free, unbounded or impossible charge."""
        if not self.accounts:
            raise LedgerError("accounts is empty; a charge names at least one account")
        _name_each("accounts", self.accounts)
        _whole("count", self.count, least=1)
        _vector("spend", self.spend, len(self.scope.parts), most=UNPROVED)
        if 0.0 in self.spend:
            raise LedgerError(f"spend is {self.spend}; each part of a spend must be above 0")


@dataclass(frozen=True)
class Release:
    """Something that is about to leave a party, identified so that it can be issued again.

    `key_index` names the draws of the keyed stream: key and index, never used twice. `inputs` is
    the SHA-256 (in hexadecimal) of every byte that the release is a function of, apart from the
    draws: the very vector the noise is added to, and the noise's parameters.
    """

    round: int
    purpose: str
    key_index: str
    inputs: str
    charges: tuple[Charge, ...]

    def __post_init__(self) -> None:
        """Refuse a release that could not be told from another, or that costs nobody anything."""
        _whole("round", self.round, least=0)
        _name("purpose", self.purpose)
        _name("key_index", self.key_index)
        check_digest("inputs", self.inputs)
        _tuple("charges", self.charges)
        if not self.charges:
            raise LedgerError("charges is empty; a release is charged to at least one account")
        for charge in self.charges:
            if not isinstance(charge, Charge):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise LedgerError(f"charges holds {charge!r}; allowed are Charge objects")


def check_caps(caps: Mapping[str, Cap]) -> None:
    """Refuse accounts without a name or a cap, and an empty list of them."""
    if not caps:
        raise LedgerError("caps is empty; a ledger needs at least one account")
    for name, cap in caps.items():
        _name("caps", name)
        if not isinstance(cap, Cap):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise LedgerError(f"the cap of {name!r} is {cap!r}; allowed are Cap objects")


def check_digest(field: str, value: Any) -> str:
    """The value, if it is a SHA-256 in lower-case hexadecimal."""
    if not isinstance(value, str) or len(value) != 64 or set(value) - set("0123456789abcdef"):
        raise LedgerError(f"{field} is {value!r}; allowed are 64 hexadecimal digits (SHA-256)")
    return value


def _name_each(field: str, values: Any) -> None:
    """Refuse anything but a tuple of different names."""
    _tuple(field, values)
    for value in values:
        _name(field, value)
    if len(set(values)) != len(values):
        twice = next(value for value in values if values.count(value) > 1)
        raise LedgerError(f"{field} holds {twice!r} twice; each name is allowed once")


def _tuple(field: str, values: Any) -> None:
    """Refuse anything but a tuple: a list could be changed after it was checked."""
    if not isinstance(values, tuple):
        raise LedgerError(f"{field} is {values!r}; allowed is a tuple")


def _name(field: str, value: Any) -> None:
    """Refuse anything but a short printable text."""
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= 200:
        raise LedgerError(f"{field} is {value!r}; allowed is a printable text of 1 to 200 letters")


def _one_of(field: str, value: Any, allowed: Sequence[str]) -> None:
    """Refuse a word outside the list."""
    if not isinstance(value, str) or value not in allowed:
        raise LedgerError(f"{field} is {value!r}; allowed are {', '.join(allowed)}")


def _whole(field: str, value: Any, least: int) -> None:
    """Refuse anything but a whole number that SQLite can hold; a truth value is none."""
    if type(value) is not int or not least <= value < 2**63:
        raise LedgerError(f"{field} is {value!r}; allowed are whole numbers from {least}")


def _vector(field: str, values: Any, length: int, most: float) -> None:
    """Refuse anything but a tuple of this many floats from 0 to `most`."""
    _tuple(field, values)
    if len(values) != length:
        raise LedgerError(f"{field} has {len(values)} numbers; the scope's parts ask for {length}")
    for value in values:
        if not isinstance(value, float) or not 0 <= value <= most:
            raise LedgerError(f"{field} holds {value!r}; allowed are floats from 0 to {most}")
