"""Taps: what each observer saw of a run, round by round, for attacks on the finished run.

Off by default. A tapped view holds what the observer of that row of the statement sees, and no
more:

* `device`: what happens inside of every client that takes part: the model it received, each
  example's gradient of its first batch as it leaves `example`, every vector before its stages and
  as it is reported;
* `server`: who took part, and what the channel shows: every upload with its client under `Each`,
  the sums under `Sum`, the uploads without names under `Shuffle`;
* `world`: the model that was sent out and what was published in return, but not who took part.

They lie in the run's private directory, one file for each view and round, whole or absent. The
file of a round is there before the checkpoint that follows it, so a run that is killed and goes on
leaves the same files as one that never stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from confide.channels import Each, Shuffle, Sum
from confide.engine import safetensors
from confide.engine.checkpoint import write_whole
from confide.engine.overheard import INSIDE
from confide.engine.rounds import Round
from confide.randomness import Key

VIEWS = ("device", "server", "world")
FOLDER = "private/taps"
SENT = "sent "
Vectors = dict[str, Tensor]
Uploads = Iterable[tuple[int, Mapping[str, Tensor]]]


@dataclass(eq=False)
class Taps:
    """The recorder of one run: told of everything, it keeps what the tapped observers see."""

    place: Path
    views: tuple[str, ...]
    key: Key
    _clients: list[int] = field(default_factory=list[int])
    _rows: dict[str, list[Tensor]] = field(default_factory=dict[str, list[Tensor]])
    _inside: Vectors = field(default_factory=dict[str, Tensor])
    _sums: Vectors = field(default_factory=dict[str, Tensor])

    @property
    def inside(self) -> bool:
        """Whether clients must tell what happens inside of them."""
        return "device" in self.views

    def heard(self, r: Round, sent: Uploads) -> Iterator[tuple[int, Mapping[str, Tensor]]]:
        """The uploads of a round on their way to the server."""
        self._clients, self._rows, self._inside, self._sums = [], {}, {}, {}
        single = "server" in self.views and not isinstance(r.channel, Sum)
        for client, vectors in sent:
            reported = {n: v for n, v in vectors.items() if not n.startswith(INSIDE)}
            self._clients.append(client)
            if single:
                for name, vector in reported.items():
                    self._rows.setdefault(name, []).append(vector.clone())
            if self.inside:
                own = {n.removeprefix(INSIDE): v for n, v in vectors.items() if n not in reported}
                own |= {f"report {name}": vector for name, vector in reported.items()}
                self._inside |= {f"client {client} {n}": v.clone() for n, v in own.items()}
            yield client, reported

    def summed(self, totals: Mapping[str, Tensor]) -> None:
        """What the server adds up; under `Sum`, all that it sees."""
        if "server" in self.views:
            self._sums = {name: total.clone() for name, total in totals.items()}

    def ended(
        self, t: int, r: Round, model: Tensor, sent: Mapping[str, Tensor],
        published: Mapping[str, Tensor],
    ) -> None:  # fmt: skip
        """Write the round down: `model` and `sent` are what went out, `published` came of it."""
        out = {"received": model, **{f"{SENT}{name}": vector for name, vector in sent.items()}}
        for view in self.views:
            if view == "device":
                seen = self._inside
            elif view == "server":
                seen = self._shown(t, r)
            else:
                seen = {f"published {name}": vector for name, vector in published.items()}
            whole = {**out, **seen}
            write_whole(
                file_of(self.place, view, t),
                lambda draft, whole=whole: safetensors.write(draft, whole),
            )
        self._clients, self._rows, self._inside, self._sums = [], {}, {}, {}

    def _shown(self, t: int, r: Round) -> Vectors:
        """What the channel shows, beside who came; only under `Each` does their order tell."""
        rows = {name: torch.stack(vectors) for name, vectors in self._rows.items()}
        clients = self._clients if isinstance(r.channel, Each) else sorted(self._clients)
        out: Vectors = {"clients": torch.tensor(clients, dtype=torch.int64)}
        match r.channel:
            case Each():
                return out | {f"upload {name}": vectors for name, vectors in rows.items()}
            case Sum():
                return out | {f"sum {name}": total for name, total in self._sums.items()}
            case Shuffle(per):
                return out | {f"shuffled {n}": self._mixed(t, v, per) for n, v in rows.items()}

    def _mixed(self, t: int, rows: Tensor, per: str) -> Tensor:
        """In the order that the server of this run sees; entries of each coordinate by size.

        Where coordinates are shuffled apart, a sorted column tells what a shuffled one does.
        """
        if per == "coordinate":
            return rows.sort(dim=0).values
        order = self.key.stream(t, None, "shuffled uploads").permutation(len(rows))
        return rows[torch.from_numpy(order)]


def open_taps(views: Sequence[str], directory: Path, key: Key, rounds: int) -> Taps | None:
    """The recorder of these views; None where none is asked for.

    `rounds`: how many a run that goes on has behind it; they must have been recorded.
    """
    wanted = tuple(view for view in VIEWS if view in views)
    place, known = directory / FOLDER, recorded(directory)
    if rounds and known != wanted:
        raise ValueError(
            f"resume: taps = {', '.join(wanted) or 'none'}, but the first {rounds} rounds were run "
            f"with {', '.join(known) or 'none'}; allowed is what the run began with."
        )
    if not wanted:
        return None
    for view in wanted:
        (place / view).mkdir(parents=True, exist_ok=True)
    text = json.dumps({"format": 1, "views": list(wanted)}) + "\n"
    write_whole(place / "taps.json", lambda draft: draft.write_text(text, "utf-8"))
    return Taps(place, wanted, key)


def file_of(place: Path, view: str, t: int) -> Path:
    """Where one view of one round lies."""
    return place / view / f"{t:06d}.safetensors"


# Reading them -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Seen:
    """What one observer saw of one round: the model that went out, and everything beside it.

    `clients` took part, in the order of the rows of every `upload`; the world is told of none.
    """

    round: int
    received: Tensor
    vectors: Mapping[str, Tensor]
    clients: tuple[int, ...]


def recorded(run_dir: str | Path) -> tuple[str, ...]:
    """The views that a run was told to record; none where it was not."""
    path = Path(run_dir) / FOLDER / "taps.json"
    if not path.is_file():
        return ()
    try:
        found: Any = json.loads(path.read_text("utf-8"))
        views = cast("list[Any]", found["views"])
        return tuple(view for view in VIEWS if view in views)
    except (OSError, ValueError, KeyError, TypeError) as why:
        raise ValueError(f"{path} is not what a run wrote: {type(why).__name__}.") from why


def read(run_dir: str | Path, view: str) -> Iterator[Seen]:
    """What this observer saw of a run, from its first round on; refused where it is not whole."""
    known = recorded(run_dir)
    if view not in known:
        raise ValueError(
            f"{run_dir} has no taps of the view {view!r}, allowed are "
            f"{' and '.join(known) or 'none'}: a run records what its [run] taps name."
        )
    folder = Path(run_dir) / FOLDER / view
    files = sorted(folder.glob("*.safetensors"))
    known_rounds = max(len(files), rounds_of(Path(run_dir)))
    missing = [t for t in range(known_rounds) if file_of(folder.parent, view, t) not in files]
    if missing:
        raise ValueError(f"{folder} lacks round {missing[0]}, allowed is every round of the run.")
    return (seen(t, safetensors.read(file)) for t, file in enumerate(files))


def rounds_of(run_dir: Path) -> int:
    """How many rounds a run that has ended made, by what it says itself."""
    path = run_dir / "public" / "run.json"
    return int(json.loads(path.read_text("utf-8"))["rounds"]) if path.is_file() else 0


def seen(t: int, vectors: Vectors) -> Seen:
    """One file's content."""
    clients = vectors.pop("clients", torch.zeros(0, dtype=torch.int64))
    return Seen(t, vectors.pop("received"), vectors, tuple(clients.tolist()))
