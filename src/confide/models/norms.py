"""Group normalisation in place of batch normalisation."""

from __future__ import annotations

from torch import nn

MOST_GROUPS = 32
LEAST_CHANNELS = 4  # a group of one channel of one value would normalise it to nothing


def groups(channels: int) -> int:
    """How many groups: at most 32, of at least 4 channels each, all of the same size."""
    most = max(1, min(MOST_GROUPS, channels // LEAST_CHANNELS))
    return next(count for count in range(most, 0, -1) if channels % count == 0)


def group_normalised(module: nn.Module) -> nn.Module:
    """The module with every batch normalisation replaced; one of flat features gets one group."""
    if isinstance(module, nn.BatchNorm1d):
        return _normal(module, 1)
    if isinstance(module, nn.BatchNorm2d | nn.BatchNorm3d | nn.SyncBatchNorm):
        return _normal(module, groups(module.num_features))
    for name, child in module.named_children():
        setattr(module, name, group_normalised(child))
    return module


def _normal(norm: nn.Module, count: int) -> nn.GroupNorm:
    features = int(norm.num_features)  # pyright: ignore[reportArgumentType]
    eps, affine = float(norm.eps), bool(norm.affine)  # pyright: ignore[reportArgumentType]
    return nn.GroupNorm(count, features, eps=eps, affine=affine)
