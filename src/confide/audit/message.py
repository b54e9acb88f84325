"""Every field of the message that leaves a client, and of what is published: what is it made of?

The same round is made several times: with other noise and nothing else changed, and with other
records. What never changes is constant; what follows the noise's key is noised; what follows the
records and not the key leaves as it is, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import torch
from torch import Tensor

from confide.aggregates import WeightedMean
from confide.audit.faults import finite
from confide.audit.laws import is_continuous, is_noise
from confide.audit.rehearsal import Seen
from confide.channels import Sum
from confide.engine.rounds import Round, Stages, Upload
from confide.stages import Assume, Mask, RandK, Rotate, Scale, Unrotate
from confide.statements import Statement

CONSTANT, NOISED, RAW, DECLARED = "constant", "noised", "raw", "declared"
MIXED = "varies"
"""Some of it follows the key, but nothing says that this hides anything."""
HARMLESS = (Assume, Mask, RandK, Rotate, Scale, Unrotate)
"""After these, two draws of continuous noise are still never alike, but where all are zero."""


@dataclass(frozen=True)
class Field:
    """One named vector, as the message or the publication has it."""

    name: str
    seen_by: str  # "server" or "world"
    length: int
    kind: str
    raw: int  # entries that follow the records and not the noise
    declared: str  # the row of the statement that covers it, in words
    fault: str = ""
    against: bool = False  # a finite row says otherwise

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "field": self.name,
            "observer": self.seen_by,
            "length": self.length,
            "kind": self.kind,
            "raw": self.raw,
            "declared": self.declared,
            "fault": self.fault,
        }


@dataclass(frozen=True, eq=False)
class Copies:
    """One field in all its versions: with each key, and with other records."""

    keys: tuple[Tensor | None, ...]
    others: tuple[Tensor | None, ...]

    def shapes(self) -> set[tuple[int, ...] | None]:
        """Whether it is there, and how long it is."""
        return {None if v is None else tuple(v.shape) for v in (*self.keys, *self.others)}

    def follows(self) -> tuple[Tensor, Tensor]:
        """Where it follows the noise's key, and where the records."""
        kept = [v for v in self.keys if v is not None]
        others = [v for v in self.others if v is not None]
        key = torch.stack([v != kept[0] for v in kept]).any(0)
        records = torch.stack([v != kept[0] for v in others]).any(0)
        return key, records


def fields_of(
    turns: Sequence[tuple[Sequence[Seen], Seen]], statement: Statement
) -> tuple[Field, ...]:
    """Every field once, as it is in the round in which it says most."""
    found: dict[tuple[str, str], Field] = {}
    for runs, other in turns:
        for field in fields_at(runs, other, statement):
            known = found.setdefault((field.name, field.seen_by), field)
            if (bool(field.fault), field.raw) > (bool(known.fault), known.raw):
                found[field.name, field.seen_by] = field
    return tuple(found.values())


def fields_at(runs: Sequence[Seen], others: Seen, statement: Statement) -> Iterator[Field]:
    """Every field; `runs` are one round under several noise keys, `others` one on other records."""
    r = runs[0].round
    for name in dict.fromkeys(n for one in (*runs, others) for m in one.sent.values() for n in m):
        copies = [
            Copies(
                tuple(one.sent[client].get(name) for one in runs),
                (others.sent[client].get(name), *(m.get(name) for m in runs[0].sent.values())),
            )
            for client in runs[0].sent
        ]
        yield sent_field(name, copies, r, statement, covered(name, runs, r))
    for name in dict.fromkeys(n for one in (*runs, others) for n in one.published):
        copy = Copies(tuple(one.published.get(name) for one in runs), (others.published.get(name),))
        yield published_field(name, copy, r, statement)
    if isinstance(r.aggregate, WeightedMean):
        cap = f"weights of at most {r.aggregate.cap:g}; data sizes are public"
        yield Field("number of records", "server", 1, DECLARED, 0, cap)
    yield Field("participation", "server", 1, DECLARED, 0, sampler_words(statement))


def sent_field(
    name: str, copies: Sequence[Copies], r: Round, statement: Statement, hidden: bool
) -> Field:
    """What each client sends under this name; the worst of the clients counts."""
    upload = r.uploads.get(name)
    pooled = isinstance(r.channel, Sum)
    if upload is None:
        against = any(finite(statement, seer) for seer in ("server", "world"))
        fault = f"`{name}` leaves each client, and the round has no such upload"
        return Field(name, "server", 0, RAW, 0, "nothing", fault, against)
    of = name if upload.data == "test" else "update"
    row = row_words(statement, "server", of, name)
    if len(shapes := {s for copy in copies for s in copy.shapes()}) > 1:
        fault = f"`{name}` leaves each client in different lengths: {sorted(map(str, shapes))}"
        return Field(name, "server", 0, RAW, 0, row, fault, finite(statement, "server", of))
    kind, raw, d = judged(copies, path_of(r, upload, ()))
    against = finite(statement, "server", of) or (r.broadcast and finite(statement, "world", of))
    fault = ""
    if raw and (against or not hidden):
        seen = "the server sees their sum" if pooled else "the server sees each"
        fault = f"{without_noise(name, raw, d, 'leaves each client')}; {seen}"
    return Field(name, "server", d, kind, raw, row, fault, against)


def published_field(name: str, copy: Copies, r: Round, statement: Statement) -> Field:
    """What everybody sees under this name."""
    upload = r.uploads.get(name)
    of = name if upload is not None and upload.data == "test" else "update"
    row = row_words(statement, "world", of, name)
    against = finite(statement, "world", of)
    if upload is None or len(copy.shapes()) > 1:
        what = "no upload has that name" if upload is None else "its length depends on the data"
        return Field(name, "world", 0, RAW, 0, row, f"`{name}` is published, and {what}", against)
    kind, raw, d = judged([copy], path_of(r, upload, r.published(name)))
    fault = without_noise(name, raw, d, "is published") if raw else ""
    return Field(name, "world", d, kind, raw, row, fault, against)


def path_of(r: Round, upload: Upload, publish: Stages) -> Stages:
    """Every stage between the records and whoever sees it; what looks at them again skips some."""
    local = (*r.local.example, *r.local.batch) if upload.data == "iterates" else ()
    return tuple(stage.for_client(0) for stage in (*local, *upload.stages, *publish))


def judged(copies: Sequence[Copies], path: Stages) -> tuple[str, int, int]:
    """The kind of a field, how many of its entries leave as they are, and how many it has."""
    raw, varies, d = 0, False, 0
    for copy in copies:
        key, records = copy.follows()
        d = key.numel()
        varies = varies or bool(key.any())
        raw = max(raw, int((records & ~key).sum()))
    noisy = any(is_noise(stage, d) for stage in path)
    if noisy and not distinct(path, d):
        return NOISED, 0, d  # few values repeat by chance; that noise's law is tested instead
    if raw:
        return RAW, raw, d
    return (CONSTANT if not varies else NOISED if noisy else MIXED), 0, d


def distinct(path: Stages, length: int) -> bool:
    """Whether no entry can be the same twice: continuous noise, or a path that claims none."""
    noises = [i for i, stage in enumerate(path) if is_noise(stage, length)]
    if not noises:
        return True
    last = noises[-1]
    after = path[last + 1 :]
    return is_continuous(path[last], length) and all(isinstance(s, HARMLESS) for s in after)


def without_noise(name: str, raw: int, length: int, how: str) -> str:
    """Which part of it is bare, in words."""
    part = "" if raw == length else f" ({raw} of its {length} entries)"
    return f"`{name}`{part} {how} without noise"


def covered(name: str, runs: Sequence[Seen], r: Round) -> bool:
    """Whether noise at `publish` stands between what was sent and the world, and works there."""
    upload = r.uploads.get(name)
    if upload is None or not any(is_noise(s, 1) for s in r.published(name)):
        return False
    vectors = [one.published[name] for one in runs if name in one.published]
    return len(vectors) > 1 and any(not torch.equal(v, vectors[0]) for v in vectors)


# The statement's word on it ---------------------------------------------------------------------


def row_words(statement: Statement, observer: str, of: str, name: str) -> str:
    """The best row about it, in short; where nothing is promised, the reason that names it."""
    rows = [c for c in statement.cells if (c.observer, c.of) == (observer, of)]
    if not rows:
        return "nothing"
    best = min(rows, key=lambda c: c.epsilon)
    if best.epsilon < inf:
        return f"finite for a {best.unit}"
    reasons = [part.partition(": ") for part in rows[-1].reason.split("; ")]
    named = [why for names, _, why in reasons if name in names.split(" and ") and why]
    return f"infinite: {named[0] if named else rows[-1].reason}"


def sampler_words(statement: Statement) -> str:
    """Who takes part, as the statement says it."""
    told = [c.sampler for c in statement.cells if c.observer == "world" and c.sampler]
    return told[0] if told else "everyone"
