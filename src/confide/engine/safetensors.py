"""The safetensors format: a length, a JSON header with types, shapes and places, raw values."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

CODES = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64"}
TYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64}
LONGEST = 100_000_000
"""Bytes of a header that are believed; the format's own limit."""


def write(path: Path, vectors: Mapping[str, Tensor]) -> None:
    """All vectors into one file, the widest types first, so that each lies where it can be read.

    Only one of them is copied at a time.
    """
    header: dict[str, Any] = {}
    place = 0
    ordered = dict(sorted(vectors.items(), key=lambda one: -one[1].itemsize))
    for name, value in ordered.items():
        size = value.numel() * value.itemsize
        header[name] = {
            "dtype": CODES[value.dtype],
            "shape": list(value.shape),
            "data_offsets": [place, place + size],
        }
        place += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for value in ordered.values():
            file.write(value.detach().cpu().contiguous().numpy().tobytes())


def read(path: Path) -> dict[str, Tensor]:
    """All vectors of a file; values are fetched from the disk when they are looked at."""
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header: dict[str, Any] = json.loads(file.read(min(length, LONGEST)))
        whole = np.memmap(path, np.uint8, mode="c")
        return {
            name: vector(whole[8 + length :], told)
            for name, told in header.items()
            if name != "__metadata__"
        }
    except OSError as why:
        raise ValueError(f"{path} cannot be read: {why.strerror}.") from why
    except (struct.error, ValueError, KeyError, TypeError, AttributeError) as why:
        raise ValueError(f"{path} is not a whole safetensors file.") from why


def vector(body: NDArray[np.uint8], told: Mapping[str, Any]) -> Tensor:
    """One of them."""
    start, end = told["data_offsets"]
    shape, kind = tuple(told["shape"]), np.dtype(TYPES[told["dtype"]])
    if not 0 <= start <= end <= len(body) or end - start != int(np.prod(shape)) * kind.itemsize:
        raise ValueError("a vector lies outside of the file")
    if start == end:
        return torch.from_numpy(np.zeros(shape, kind))
    values = np.frombuffer(body, kind, int(np.prod(shape)), start)
    return torch.from_numpy(values).view(shape)
