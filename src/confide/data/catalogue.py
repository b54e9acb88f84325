"""The data sets by name: what they are, under which licence, and where they may be found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from confide.data.places import Files, Way

_HERE = str(Path(__file__).parent)


@dataclass(frozen=True)
class Entry:
    """A data set as it is published; what is found here may be a part of it, and says so."""

    name: str
    what: str
    records: str
    classes: str
    licence: str
    home: str
    get: str  # how to get it, as the end of a sentence
    ways: tuple[Way, ...]


_ENTRIES = (
    Entry(
        name="mnist",
        what="handwritten digits, 28x28 grey",
        records="60,000 / 10,000",
        classes="10",
        licence="CC BY-SA 3.0",
        home="Y. LeCun, C. Cortes, C. Burges: the MNIST database of handwritten digits",
        get="it comes with confide, so the installation is damaged: install it again",
        # An absolute folder wins over every root that it is joined to.
        ways=(Files(_HERE, ("mnist.npz",), "confide.data.pictures:read_mnist"),),
    ),
)

CATALOGUE: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
