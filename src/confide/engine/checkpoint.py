"""Checkpoints: everything a run needs to go on to the same bits, in one file, whole or absent."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confide.disk import sync_directory
from confide.engine.rounds import Released
from confide.ledger import Head

MAGIC = b"confide checkpoint 2\n"
DIGEST = hashlib.sha256().digest_size


@dataclass(eq=False)
class Progress:
    """Where a run stands between two rounds."""

    model: Tensor
    participations: NDArray[np.int64]
    t: int = 0
    server: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    earlier: tuple[Tensor, ...] = ()
    released: tuple[Released, ...] = ()
    validation: tuple[float, ...] = ()
    metrics: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    memory: Tensor | None = None
    remembered: Tensor | None = None
    sightings: dict[str, Tensor] = field(default_factory=dict[str, Tensor])  # of canaries
    output: str = ""  # the digest of the last release
    head: Head | None = None  # the ledger's newest entry
    examples: int = 0
    seconds: float = 0.0

    def move(self, device: torch.device) -> None:
        """Put what rounds compute with where the clients are trained."""
        self.model = self.model.to(device)
        self.server = {name: vector.to(device) for name, vector in self.server.items()}
        self.earlier = tuple(model.to(device) for model in self.earlier)
        self.released = tuple(
            replace(one, value=one.value.to(device)) if isinstance(one.value, Tensor) else one
            for one in self.released
        )


class CheckpointError(ValueError):
    """A checkpoint that cannot be used, and why."""


class NotWritten(OSError):
    """A file of the run could not be written; what it held before is still there."""


def save(path: Path, progress: Progress, fingerprint: str) -> None:
    """Write beside it, sync, and rename: a crash leaves the old checkpoint or the new one."""
    body = BytesIO()
    torch.save({"fingerprint": fingerprint, "progress": progress}, body)
    with body.getbuffer() as payload:
        digest = hashlib.sha256(payload).digest()

        def write(draft: Path) -> None:
            with draft.open("wb") as file:
                for part in (MAGIC, digest, payload):
                    file.write(part)

        write_whole(path, write)


def load(path: Path, fingerprint: str) -> Progress | None:
    """The checkpoint of this very run; None when it never got that far.

    A checkpoint holds Python objects, and reading one can run any code: it lies in the run's
    private directory, and only a whole file of one's own is looked at.
    """
    if not os.path.lexists(path):
        return None
    check_own(path)
    try:
        data = path.read_bytes()
    except OSError as why:
        raise CheckpointError(f"{path} cannot be read: {why.strerror}.") from why
    told, payload = data[len(MAGIC) : len(MAGIC) + DIGEST], data[len(MAGIC) + DIGEST :]
    if not data.startswith(MAGIC):
        raise CheckpointError(f"{path} is not a checkpoint of this version of confide.")
    if told != hashlib.sha256(payload).digest():
        raise CheckpointError(
            f"{path} is damaged: its bytes are not those that were written; without it the run "
            "starts again at its first round, to the same bits."
        )
    try:
        body = torch.load(BytesIO(payload), map_location="cpu", weights_only=False)
    except Exception as why:  # anything at all: the classes it names may have changed
        said = " ".join(str(why).split())
        raise CheckpointError(f"{path} cannot be read: {type(why).__name__}: {said}.") from why
    if body["fingerprint"] != fingerprint:
        raise CheckpointError(
            f"{path} belongs to a run with other settings, data or model; "
            "resume with the run's own."
        )
    return body["progress"]


def check_own(path: Path) -> None:
    """Refuse a link, and a file that somebody else has put there."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise CheckpointError(f"{path} is not a regular file, allowed is the run's own checkpoint.")
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        raise CheckpointError(
            f"{path} belongs to user {found.st_uid}, allowed is a file of one's own (user "
            f"{os.getuid()}): reading a checkpoint can run any code."
        )


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a draft, then put it in place in one step that survives a power cut."""
    draft = path.with_name(f".{path.name}.new")
    try:
        draft.unlink(missing_ok=True)  # what a kill has left, or a link
        write(draft)
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.replace(path)
        sync_directory(path.parent)
    except OSError as why:
        forget(draft)
        raise NotWritten(
            f"{path} could not be written ({why.strerror or why}); what was there before is whole, "
            "and the run can be resumed from it"
        ) from why
    except BaseException:
        forget(draft)
        raise


def forget(draft: Path) -> None:
    """Take away a draft, if that is possible."""
    with suppress(OSError):
        draft.unlink()
