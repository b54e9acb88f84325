"""Opacus on example-level DP-SGD in one client: per-sample hooks or ghost clipping.

`python benchmarks/peers/run_opacus.py WORKLOAD --initial PATH [--variant hooks|ghost]`
"""

from __future__ import annotations

import warnings

import torch
from networks import arrays, build, tensors
from opacus import PrivacyEngine
from protocol import Clock, Task, report, task
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def run(what: Task) -> None:
    if what.work.unit != "example":
        raise SystemExit(f"{what.work.name}: Opacus has no cohorts of clients")
    if what.threads:
        torch.set_num_threads(what.threads)
    warnings.simplefilter("ignore")
    records = TensorDataset(*tensors(*what.data()[0], double=what.double))
    clock = Clock()
    model = build(what.work.network, what.initial, double=what.double, dropout=what.dropout)
    criterion: nn.Module = nn.CrossEntropyLoss()
    settings = {
        "module": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=what.work.rate),
        "data_loader": DataLoader(records, batch_size=what.work.batch),
        "noise_multiplier": what.noise,
        "max_grad_norm": what.work.clip,
        "poisson_sampling": False,  # the same batches as every other side
        "grad_sample_mode": what.variant,
    }
    if what.variant == "ghost":
        private, optimizer, criterion, loader = PrivacyEngine().make_private(
            criterion=criterion, **settings
        )
    else:
        private, optimizer, loader = PrivacyEngine().make_private(**settings)
    for _ in range(what.rounds):
        for rows, labels in loader:
            optimizer.zero_grad()
            criterion(private(rows), labels).backward()
            optimizer.step()
        clock.round()
    report(what, clock, arrays(model), ("opacus", "torch"))


if __name__ == "__main__":
    run(task(__doc__, ("hooks", "ghost")))
