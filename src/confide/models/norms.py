"""Group normalisation in place of batch normalisation."""

from __future__ import annotations

import torch
from torch import nn

MOST_GROUPS = 32
LEAST_CHANNELS = 4  # a group of one channel of one value would normalise it to nothing
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


def groups(channels: int) -> int:
    """How many groups: at most 32, of at least 4 channels each, all of the same size."""
    most = max(1, min(MOST_GROUPS, channels // LEAST_CHANNELS))
    return next(count for count in range(most, 0, -1) if channels % count == 0)


def group_normalised(module: nn.Module) -> nn.Module:
    """The module with every batch normalisation replaced, one that is shared by one that is shared.

    One of flat features gets a single group. Scales and shifts keep the values they have.
    """
    replaced: dict[nn.Module, nn.GroupNorm] = {}
    for path, part in list(module.named_modules(remove_duplicate=False)):
        if not isinstance(part, BATCH_NORMS):
            continue
        fresh = replaced.setdefault(part, _normal(part))
        if not path:
            return fresh
        parent, _, name = path.rpartition(".")
        setattr(module.get_submodule(parent), name, fresh)
    return module


def _normal(norm: nn.Module) -> nn.GroupNorm:
    features = int(norm.num_features)  # pyright: ignore[reportArgumentType]
    eps, affine = float(norm.eps), bool(norm.affine)  # pyright: ignore[reportArgumentType]
    count = 1 if isinstance(norm, nn.BatchNorm1d) else groups(features)
    fresh = nn.GroupNorm(count, features, eps=eps, affine=affine)
    if affine:
        with torch.no_grad():
            for kept, old in zip(fresh.parameters(), norm.parameters(), strict=True):
                kept.copy_(old)
    return fresh
